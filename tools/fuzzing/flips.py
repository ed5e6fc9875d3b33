"""Files with a flipped bit: they are refused, or what they say is the same."""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

from fuzzing.streamed_fit import data, fit, fit_and_kill, undisturbed
from fuzzing.workers import run_trials
from topksvm import TopKLinearSVC

PER_MODEL = 200


def run(seed: int, end: float, jobs: int, tell) -> Counter:
    """Flip bits until the time is over."""
    return run_trials(trial, seed, end, jobs, tell)


def trial(rng):
    """Yield the outcomes of flips in a model file, then that of one in a checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model().save(path)
        content = path.read_bytes()
        for _ in range(PER_MODEL):
            bit = rng.randrange(8 * len(content))
            path.write_bytes(flipped(content, bit))
            yield flipped_model(path, bit)
        yield flipped_checkpoint(Path(folder) / "checkpoint", rng)


def flipped(content: bytes, bit: int) -> bytes:
    """Return the content with one bit changed."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@cache
def model() -> TopKLinearSVC:
    """Return a small model with labels that are texts."""
    X, y = data()
    labels = np.array([f"class {label}" for label in y])
    return TopKLinearSVC(2, tol=0.1, random_state=0).fit(X[::10].astype(np.float32), labels[::10])


def flipped_model(path: Path, bit: int) -> str | None:
    """Load a damaged model; return what is wrong if it is taken for a good one."""
    try:
        loaded = TopKLinearSVC.load(path)
    except ValueError:
        return None
    except Exception as error:
        return f"model, bit {bit}: {type(error).__name__}: {error}"
    there, wanted = description(loaded), description(model())
    differing = [name for name in wanted if there[name] != wanted[name]]
    return f"model, bit {bit}: loads with another {', '.join(differing)}" if differing else None


def description(fitted: TopKLinearSVC) -> dict[str, str]:
    """Return everything that a file says about a model, as texts."""
    arrays = {name: getattr(fitted, name) for name in ("coef_", "intercept_", "classes_")}
    found = {name: f"{array.dtype} {array.tolist()}" for name, array in arrays.items()}
    for name in ("certificate_", "history_", "n_iter_"):
        found[name] = repr(getattr(fitted, name))
    return found | {name: repr(value) for name, value in fitted.get_params().items()}


def flipped_checkpoint(folder: Path, rng) -> str | None:
    """Resume from a damaged checkpoint; return what is wrong unless it is refused or harmless."""
    wanted, seconds = undisturbed()
    fit_and_kill(folder, rng.uniform(0.1, 0.9) * seconds)
    files = sorted(folder.glob("*")) if folder.exists() else []
    if not files:
        return None
    path = rng.choice(files)
    content = path.read_bytes()
    bit = rng.randrange(8 * max(len(content), 1))
    path.write_bytes(flipped(content, bit) if content else b"\1")
    try:
        found = fit(folder)
    except ValueError:
        return None
    except Exception as error:
        return f"{path.name}, bit {bit}: {type(error).__name__}: {error}"
    same = np.array_equal(found, wanted)
    return None if same else f"{path.name}, bit {bit}: another model"
