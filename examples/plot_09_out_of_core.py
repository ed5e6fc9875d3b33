"""
More rows than memory
=====================

Features of a large data set lie on disk, in several files of half precision, and do not fit into
memory as float32. :meth:`TopKLinearSVC.fit <topksvm.TopKLinearSVC.fit>` takes the list of files,
reads them by the piece and works on one window of rows while the next is read. This example watches
the memory while three models are trained: one on all rows in memory, two from disk within a limit.
"""

# %%
# Eight files of float16, as a network might have written them. The classes come in groups of four
# that are easily confused.
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from topksvm import TopKLinearSVC
from topksvm.datasets import make_ambiguous_classes

X, y = make_ambiguous_classes(21_000, 512, 40, group_size=4, noise=0.5, random_state=0)
X_test, y_test = X[18_000:].copy(), y[18_000:]
X_train, y_train = X[:18_000].astype(np.float16), y[:18_000]
folder = tempfile.TemporaryDirectory()
shards = [Path(folder.name) / f"features{i}.npy" for i in range(8)]
for path, rows in zip(shards, np.array_split(X_train, 8), strict=True):
    np.save(path, rows)
del X, X_train
print(f"{sum(path.stat().st_size for path in shards) / 1e6:.0f} MB on disk")


# %%
# A thread that notes the memory of all arrays a hundred times per second.
class MemoryWatch:
    """Within ``with``, keeps ``seconds`` and ``megabytes``."""

    def __enter__(self):
        self.seconds, self.megabytes = [], []
        self.is_over = threading.Event()
        tracemalloc.start()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        """Note the time and the memory until it is over."""
        start = time.perf_counter()
        while not self.is_over.wait(0.01):
            self.seconds.append(time.perf_counter() - start)
            self.megabytes.append(tracemalloc.get_traced_memory()[0] / 1e6)

    def __exit__(self, *error):
        self.is_over.set()
        self.thread.join()
        tracemalloc.stop()


# %%
# First as usual: read all, widen it to float32, train. Then from the files themselves, with
# ``memory_limit`` in bytes: weights, duals and two windows of rows must fit in it. ``checkpoint``
# names a folder where the state is written every minute and on Ctrl-C; a run that was stopped goes
# on from there. A first fit on some rows loads the compiled kernels, which is not to be measured.
model = TopKLinearSVC(k=4, C=0.05, random_state=0)
model.fit(np.load(shards[0]), y_train[:2250])
watches, models = {}, {}
with MemoryWatch() as watches["all rows in memory"]:
    rows = np.concatenate([np.load(path).astype(np.float32) for path in shards])
    models["all rows in memory"] = TopKLinearSVC(k=4, C=0.05, random_state=0).fit(rows, y_train)
    del rows
for limit in (40, 25):
    name = f"from disk, limit {limit} MB"
    model = TopKLinearSVC(k=4, C=0.05, memory_limit=limit * 10**6, random_state=0)
    with MemoryWatch() as watches[name]:
        model.set_params(checkpoint=Path(folder.name) / name)
        models[name] = model.fit(shards, y_train)
for name, model in models.items():
    print(
        f"{name:24} top-1 {model.score(X_test, y_test):.1%}  "
        f"top-4 {model.score_topk(X_test, y_test, 4):.1%}  {model.n_iter_} passes, "
        f"proven gap {model.certificate_.relative_gap:.0e}"
    )
folder.cleanup()

# %%
# All three are proven to be within 0.1 per cent of the same optimum. The dotted lines are the
# limits. The bump at the end is the certificate, for which blocks of rows are widened to float64.
# The peak at the start is the widening to float32.
figure, ax = plt.subplots(figsize=(8.5, 4.4), layout="constrained")
for (name, watch), colour in zip(watches.items(), ["#ee6677", "#4477aa", "#228833"], strict=True):
    ax.fill_between(watch.seconds, watch.megabytes, color=colour, alpha=0.15, linewidth=0)
    ax.plot(watch.seconds, watch.megabytes, color=colour, label=name)
for limit, colour in ((40, "#4477aa"), (25, "#228833")):
    ax.axhline(limit, color=colour, linestyle=":")
ax.set(xlabel="seconds", ylabel="memory of arrays, MB", xlim=(0, None), ylim=(0, None))
ax.legend(frameon=False)
ax.grid(visible=True, alpha=0.3)
plt.show()
