"""Train on the rows of this folder's source."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from npz_rows import NpzRows
from sklearn.datasets import load_digits

from topksvm import TopKLinearSVC

X, y = load_digits(return_X_y=True)
X = X / 16
with TemporaryDirectory() as folder:
    path = Path(folder) / "digits.npz"
    np.savez_compressed(path, *np.array_split(X, 5))
    model = TopKLinearSVC(k=2, C=0.01, random_state=0).fit(NpzRows(path), y)
    print(f"top-2 accuracy {model.score_topk(NpzRows(path), y):.3f}, {model.status_}")
