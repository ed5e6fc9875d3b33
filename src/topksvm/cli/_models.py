"""Models in files, and in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from topksvm.cli._errors import UserError, import_extra
from topksvm.cli._output import check_writable, one_line


def check_model_path(path: Path) -> None:
    """Find out before the training whether the model can be written."""
    check_writable(path, "-o", [".safetensors"])
    import_extra("safetensors", "writing a model")


def load_model(path: Path) -> tuple[Any, tuple[str, ...] | None]:
    """Return a model, and the names of its features if it has them.

    The columns of a file are matched with the names here, so the model itself gets plain arrays
    and need not ask for names.
    """
    from topksvm.estimators import TopKLinearSVC

    try:
        model = TopKLinearSVC.load(path)
    except (OSError, ValueError, ImportError) as error:
        raise UserError(f"{one_line(error)}.") from error
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return model, None
    del model.feature_names_in_
    return model, tuple(names)


def save_model(model: Any, names: tuple[str, ...] | None, path: Path) -> None:
    """Write a model, with the names of its features if the file had them."""
    model.set_params(callback=None, checkpoint=None)  # They belong to this run.
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    try:
        model.save(path)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}. Choose another place with -o."
        ) from error
    finally:
        if names is not None:
            del model.feature_names_in_


def certificate_in_words(certificate: Any) -> str:
    """Return what is proven about a model."""
    return (
        f"objective {certificate.primal:.6g}, proven: no model of this kind is more than "
        f"{100 * certificate.relative_gap:.2g} % better"
    )


def certificate_as_json(certificate: Any) -> dict[str, float]:
    """Return a certificate as JSON can hold it."""
    names = ("primal", "dual", "gap", "relative_gap")
    return {name: float(getattr(certificate, name)) for name in names}
