"""
Intents of short texts
======================

A help desk sorts messages by what people want. Short messages leave it open: *my card does not
work* may be about a lost PIN or a broken chip. This example trains on sparse TF-IDF features and
shows which intents are taken for one another, and how many of these mistakes three guesses repair.
"""

# %%
# A corpus to play with, so that nothing is downloaded. An intent has phrases of its own, and shares
# vague ones with the others of its group: half of the messages could come from any of them.
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline

from topksvm import TopKLinearSVC
from topksvm.metrics import topk_ranks

VAGUE = {
    "card": ["my card does not work", "problem with the card", "the shop refused my card"],
    "transfer": ["where is my money", "the transfer did not arrive", "a payment is missing"],
    "profile": ["I want to change my details", "update my account", "my data are wrong"],
    "costs": [
        "why did you charge me",
        "there is a fee I do not know",
        "I paid more than I thought",
    ],
}
OWN = {
    "card": {
        "card lost": ["I lost it somewhere", "cannot find it anywhere", "left it on the train"],
        "card stolen": ["somebody took my purse", "it was stolen last night", "a thief has it"],
        "PIN blocked": ["I forgot the PIN", "wrong code three times", "the PIN is blocked"],
        "chip broken": ["the chip is scratched", "the reader sees no chip", "it is bent"],
    },
    "transfer": {
        "transfer pending": [
            "it says pending",
            "still waiting since Monday",
            "how long will it take",
        ],
        "transfer failed": ["it came back", "the app shows an error", "it was rejected"],
        "wrong account": ["I typed a wrong number", "it went to a stranger", "the name was wrong"],
    },
    "profile": {
        "new address": ["I have moved", "new street and town", "letters go to my old flat"],
        "new phone": ["I have a new number", "my mobile was replaced", "no text messages arrive"],
        "new name": ["I got married", "my surname is different now", "the name has a typo"],
    },
    "costs": {
        "exchange rate": ["I paid in dollars", "the rate was bad", "what is the rate abroad"],
        "cash fee": ["I took money at a machine", "the cash machine in Spain", "withdrew fifty"],
        "monthly fee": ["every month the same amount", "is the account not free", "on the first"],
    },
}
CHATTER = ["hello", "please help", "it is urgent", "thanks", "what shall I do", "good morning", ""]


def make_messages(per_intent, seed):
    """Return messages and their intents."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for group, intents in OWN.items():
        for intent, phrases in intents.items():
            for _ in range(per_intent):
                source = VAGUE[group] if rng.random() < 0.5 else phrases
                words = " ".join([rng.choice(CHATTER), rng.choice(source), rng.choice(CHATTER)])
                kept = [word for word in words.split() if rng.random() < 0.85]
                texts.append(" ".join(kept))
                labels.append(intent)
    return texts, np.array(labels)


train, y_train = make_messages(80, seed=0)
test, y_test = make_messages(80, seed=1)
print(*(f"{y_test[i]:16} {test[i]}" for i in range(3, 1000, 160)), sep="\n")

# %%
# TF-IDF gives a CSR matrix, which is trained on as it is. Three models: for one guess, for three,
# and softmax.
kinds = {
    "SVM, trained for 1": TopKLinearSVC(k=1, C=1.0, random_state=0),
    "SVM, trained for 3": TopKLinearSVC(k=3, C=1.0, random_state=0),
    "softmax": TopKLinearSVC(loss="softmax", C=10.0, random_state=0),
}
models = {
    name: make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), model).fit(train, y_train)
    for name, model in kinds.items()
}
for name, model in models.items():
    ranks = topk_ranks(y_test, model.decision_function(test), model.classes_)
    print(f"{name:18}", *(f" top-{j} {(ranks <= j).mean():.1%}" for j in (1, 2, 3, 4)))

# %%
# What the model for three answers:
model = models["SVM, trained for 3"]
intents = [intent for group in OWN.values() for intent in group]
guesses = model.predict(test)
three = model[-1].predict_topk(model[:-1].transform(test))
for i in range(3, 1000, 160):
    print(f"{test[i]:38} -> {', '.join(three[i])}")

# %%
# On the left, the share of messages of a row's intent whose *first* guess is the column's: mistakes
# stay within the groups. On the right, the pairs that are confused most, in either direction, and
# what becomes of the mistake if three guesses are shown. Groups of three are repaired; the intents
# about cards are four, so one is left out of three guesses.
confusion = confusion_matrix(y_test, guesses, labels=intents, normalize="true")
is_repaired = (three == y_test[:, None]).any(axis=1)
pairs = []
for a, b in combinations(intents, 2):
    is_mistake = ((y_test == a) & (guesses == b)) | ((y_test == b) & (guesses == a))
    pairs.append((is_mistake.sum(), (is_mistake & is_repaired).sum(), f"{a} / {b}"))
mistakes, repaired, names = zip(*sorted(pairs)[-12:], strict=True)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 5.2), width_ratios=[1.6, 1], layout="constrained"
)
image = left.imshow(confusion, cmap="Blues", vmin=0, vmax=0.8)
figure.colorbar(image, ax=left, shrink=0.6, format=PercentFormatter(xmax=1))
left.set_xticks(range(13), intents, rotation=60, ha="right", rotation_mode="anchor")
left.set_yticks(range(13), intents)
left.set(xlabel="first guess", ylabel="true intent", title="First guesses")
start = -0.5
for group in OWN.values():
    size = len(group)
    left.add_patch(Rectangle((start, start), size, size, fill=False, edgecolor="#ee6677", lw=2))
    start += size
right.barh(names, repaired, color="#4477aa", label="repaired by three guesses")
right.barh(
    names, np.subtract(mistakes, repaired), left=repaired, color="#ee6677", label="missed by them"
)
right.set(xlabel="test messages", title="Pairs confused most")
figure.legend(frameon=False, loc="outside lower right", ncols=2)
right.grid(visible=True, axis="x", alpha=0.3)
right.set_axisbelow(True)
plt.show()
