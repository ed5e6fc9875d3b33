"""Models in files: arrays as safetensors, the rest as JSON beside them in the same file.

Nothing in such a file is code, so loading one from a stranger is safe, unlike a pickle. A SHA-256
of all that the file holds is in it as well, so a damaged file is found out. The checksum is no
signature: who changes a file on purpose can write a new one. So what is loaded is checked, too,
see `_claims.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from topksvm import __version__
from topksvm._files import replacing
from topksvm.estimators._claims import (
    check_norm,
    check_status,
    get_certificate,
    get_history,
    whole_number,
    write_certificate,
)
from topksvm.losses import LOSSES, traits_of

Array = NDArray[Any]
E = TypeVar("E")

FORMAT = "topksvm-linear-3"


def save_model(model: Any, path: Any) -> None:
    """Write a fitted linear model."""
    save_file = _import_safetensors().numpy.save_file
    header = {
        "parameters": {k: _plain(k, v) for k, v in model.get_params(deep=False).items()},
        "certificate": write_certificate(model.certificate_),
        "status": model.status_,
        "history": model.history_,
        "n_iter": int(model.n_iter_),
        "feature_names": getattr(model, "feature_names_in_", np.array([])).tolist(),
        "topksvm": __version__,
    }
    tensors = {"coef": model.coef_, "intercept": model.intercept_}
    _put_classes(model.classes_, header, tensors)
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    text = json.dumps(header)
    try:
        _build(type(model), json.loads(text), tensors)
    except Exception as error:
        raise ValueError(
            f"The model cannot be saved, as no file with it could be loaded: {error}. Set its "
            "parameters and attributes as fit left them, or train it again."
        ) from error
    metadata = {"format": FORMAT, "header": text, "sha256": checksum(text, tensors)}
    with replacing(Path(path)) as temporary:
        save_file(tensors, temporary, metadata=metadata)


def load_model(kind: type[E], path: Any) -> E:
    """Return the model that `save_model` wrote."""
    safetensors = _import_safetensors()
    where = Path(path)
    if not where.is_file():
        raise FileNotFoundError(f"There is no model file {where}.")
    try:
        with safetensors.safe_open(where, framework="numpy") as stream:
            metadata = stream.metadata() or {}
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except Exception as error:
        raise ValueError(
            f"{where} is damaged or no safetensors file ({error}); use another copy of it."
        ) from error
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{where} is no model that this version of topksvm can load: its format is "
            f"{metadata.get('format')!r}, expected {FORMAT!r}. Write one with {kind.__name__}.save."
        )
    # A file can be wrong in any way, so any error is one about the file.
    try:
        if metadata["sha256"] != checksum(metadata["header"], tensors):
            raise ValueError("its checksum does not fit its content")
        with _part("header"):
            header = json.loads(metadata["header"])
        return _build(kind, header, tensors)
    except Exception as error:
        raise ValueError(f"{where} is damaged ({error}); use another copy of it.") from error


def checksum(header: str, tensors: dict[str, Array]) -> str:
    """Return the SHA-256 of the format, the header, and the tensors with all that they are."""
    digest = hashlib.sha256()

    def add(part: bytes | memoryview) -> None:
        # With its length before it, so that no byte can move from one part to the next.
        digest.update(memoryview(part).nbytes.to_bytes(8, "little"))
        digest.update(part)

    add(FORMAT.encode())
    add(header.encode())
    for name, tensor in sorted(tensors.items()):
        add(json.dumps([name, tensor.dtype.str, tensor.shape]).encode())
        add(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _import_safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            "Models are saved and loaded with the package safetensors, which is missing; install "
            "it with: pip install 'topksvm[safetensors]'"
        ) from error
    return safetensors


@contextmanager
def _part(name: str) -> Iterator[None]:
    """Turn whatever error a part of a file comes to into one that names the part."""
    try:
        yield
    except Exception as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{name}: {what or type(error).__name__}") from error


def _build(kind: type[E], header: Any, tensors: dict[str, Array]) -> E:
    """Return the model; complain if there is none that it could be."""
    with _part("header"):
        names = ("parameters", "certificate", "status", "history", "n_iter", "feature_names")
        parts = [header[name] for name in names]
    parameters, certificate, status, history, n_iter, features = parts
    with _part("parameters"):
        model: Any = kind(**{k: _unplain(v) for k, v in parameters.items()})
        model._validate_params()
    with _part("tensors"):
        _set_arrays(model, header, tensors)
    with _part("feature_names"):
        _set_names(model, _strings(features))
    with _part("parameters"):
        _check_k(model.loss, model.k, model.classes_.size)
    with _part("certificate"):
        model.certificate_ = get_certificate(certificate)
        check_norm(model)
    with _part("history"):
        model.history_ = get_history(history, model.certificate_)
    with _part("status"):
        model.status_ = check_status(status, model.certificate_, model.tol)
    with _part("n_iter"):
        model.n_iter_ = whole_number(n_iter)
    return cast(E, model)


def _set_arrays(model: Any, header: dict[str, Any], tensors: dict[str, Array]) -> None:
    model.coef_, model.intercept_ = tensors["coef"], tensors["intercept"]
    model.classes_ = _get_classes(header, tensors)
    _check_arrays(model.coef_, model.intercept_, model.classes_)
    if not model.fit_intercept and model.intercept_.any():
        raise ValueError("an intercept that is not zero, although fit_intercept is False")
    model.n_features_in_ = model.coef_.shape[1]


def _set_names(model: Any, names: list[str]) -> None:
    if not names:
        return
    if len(names) != model.n_features_in_:
        raise ValueError(f"{len(names)} names for {model.n_features_in_} features")
    model.feature_names_in_ = np.array(names, dtype=object)


def _check_k(loss: str, k: int, m: int) -> None:
    if traits_of(LOSSES[loss]).uses_k and not 1 <= k < m:
        raise ValueError(f"k = {k} for {m} classes; it must be between 1 and {m - 1}")


def _check_arrays(coef: Array, intercept: Array, classes: Array) -> None:
    m = classes.size
    if classes.ndim != 1 or m < 2 or np.unique(classes).size != m:
        raise ValueError(
            f"the classes, of shape {classes.shape}, are not at least 2 different ones"
        )
    if coef.ndim != 2 or coef.shape[0] != m or intercept.shape != (m,) or coef.shape[1] < 1:
        raise ValueError(
            f"arrays of shapes {coef.shape} and {intercept.shape} do not fit {m} classes"
        )
    for array in (coef, intercept):
        if array.dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
            raise ValueError("weights that are not finite numbers in float32 or float64")


def _put_classes(classes: Array, header: dict[str, Any], tensors: dict[str, Array]) -> None:
    """Put numbers among the tensors, strings into the header."""
    if classes.dtype.kind in "iufb":
        tensors["classes"] = classes
    elif all(isinstance(label, str) for label in classes.tolist()):
        header["classes"] = classes.tolist()
        header["classes_kind"] = classes.dtype.kind
    else:
        raise TypeError(
            f"The labels are of dtype {classes.dtype}; only numbers and strings can be saved. "
            "Train on such labels, or keep the model with joblib."
        )


def _get_classes(header: dict[str, Any], tensors: dict[str, Array]) -> Array:
    if "classes" in tensors:
        return tensors["classes"]
    labels = _strings(header["classes"])
    return np.array(labels, dtype=object if header["classes_kind"] == "O" else np.str_)


def _strings(values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("not a list of strings")
    return values


def _plain(name: str, value: Any) -> Any:
    """Return a parameter as JSON can hold it, None for what only a fit has a use for."""
    if name in ("callback", "checkpoint"):
        return None
    if isinstance(value, dict):
        # JSON knows no keys but strings.
        return {"pairs": [[_plain(name, k), _plain(name, v)] for k, v in value.items()]}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, type | np.dtype):
        return np.dtype(value).name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if name == "random_state":
        return None  # A generator: the model does not depend on it any more.
    raise TypeError(
        f"{name} = {value!r} cannot be saved; keep the model with joblib, or set it to a number."
    )


def _unplain(value: Any) -> Any:
    return dict(value["pairs"]) if isinstance(value, dict) else value
