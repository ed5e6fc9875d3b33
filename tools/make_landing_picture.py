"""Draw the picture on the first page of the site, for a light and a dark ground.

    python tools/make_landing_picture.py

Sketches of *Quick, Draw!* and the five best guesses for each. The true class is the first guess,
the second, the third and the fourth; of all such sketches we take one with a clear lead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from topksvm import TopKLinearSVC
from topksvm._files import replacing
from topksvm.datasets import load_quickdraw

FOLDER = Path(__file__).parents[1] / "docs" / "images"
INK = {"light": "#222832", "dark": "#ced6dd"}
BAR = {"light": "#d5d9de", "dark": "#3a434e"}
RIGHT = {"light": "#8fd19e", "dark": "#2c7a3f"}
PLACES = (0, 1, 2, 3)


def make_guesses() -> list[tuple[np.ndarray, str, list[str], np.ndarray]]:
    """Return, per sketch, its picture, its name, five guesses, and their lead on the sixth."""
    data = load_quickdraw(features="hog")
    names = np.array(data.class_names)
    train, test = data.y_train % 3 == 0, data.y_test % 3 == 0  # A third of the classes will do.
    model = TopKLinearSVC(k=5, C=1.0, random_state=0)
    model.fit(data.X_train[train], names[data.y_train[train]])
    labels, images = names[data.y_test[test]], data.images("test")[test]
    guesses, scores = model.predict_topk(data.X_test[test], k=6, return_scores=True)
    lead = scores[:, :5] - scores[:, 5:]
    chosen = []
    for place in PLACES:
        rows = np.flatnonzero(guesses[:, place] == labels)
        best = rows[np.argmax(lead[rows, place] / lead[rows, 0] + 0.3 * lead[rows, place])]
        chosen.append((images[best], labels[best], guesses[best, :5].tolist(), lead[best]))
    return chosen


def draw(sketches: list[Any], mode: str) -> Any:
    """Return the figure."""
    ink = INK[mode]
    figure, axes = plt.subplots(
        len(sketches), 2, figsize=(4.6, 5.6), width_ratios=[1, 1.7], layout="constrained"
    )
    for (image, name, guesses, lead), (picture, bars) in zip(sketches, axes, strict=True):
        rgba = np.zeros((*image.shape, 4))
        rgba[..., :3] = mpl.colors.to_rgb(ink)
        rgba[..., 3] = image / 255
        picture.imshow(rgba, interpolation="bicubic")
        colours = [RIGHT[mode] if guess == name else BAR[mode] for guess in guesses]
        bars.barh(range(5), lead / lead[0], color=colours, height=0.82)
        for place, guess in enumerate(guesses):
            weight = "bold" if guess == name else "normal"
            bars.text(0.02, place, guess, va="center", color=ink, fontsize=10, fontweight=weight)
        bars.set(xlim=(0, 1.02), ylim=(4.6, -0.6))
        picture.set_axis_off()
        bars.set_axis_off()
    return figure


def main() -> None:
    """Write both pictures."""
    sketches = make_guesses()
    for mode in INK:
        figure = draw(sketches, mode)
        with replacing(FOLDER / f"guesses-{mode}.png") as path:
            figure.savefig(path, dpi=170, transparent=True, format="png")
        plt.close(figure)


if __name__ == "__main__":
    main()
