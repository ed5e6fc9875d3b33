"""Models in files: arrays as safetensors, the rest as JSON beside them in the same file.

Nothing in such a file is code, so loading one from a stranger is safe, unlike a pickle.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from topksvm import __version__
from topksvm._files import replacing
from topksvm.solvers import Certificate

Array = NDArray[Any]
E = TypeVar("E")

FORMAT = "topksvm-linear-1"


def save_model(model: Any, path: Any) -> None:
    """Write a fitted linear model."""
    save_file = _import_safetensors().numpy.save_file
    header = {
        "parameters": {k: _plain(k, v) for k, v in model.get_params(deep=False).items()},
        "certificate": [float(model.certificate_.primal), float(model.certificate_.dual)],
        "history": model.history_,
        "n_iter": int(model.n_iter_),
        "feature_names": getattr(model, "feature_names_in_", np.array([])).tolist(),
        "topksvm": __version__,
    }
    tensors = {"coef": model.coef_, "intercept": model.intercept_}
    _put_classes(model.classes_, header, tensors)
    with replacing(Path(path)) as temporary:
        save_file(
            {name: np.ascontiguousarray(t) for name, t in tensors.items()},
            temporary,
            metadata={"format": FORMAT, "header": json.dumps(header)},
        )


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
    except (safetensors.SafetensorError, TypeError, ValueError) as error:
        raise ValueError(
            f"{where} is damaged or no safetensors file ({error}); use another copy of it."
        ) from error
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{where} is no model that this version of topksvm can load: its format is "
            f"{metadata.get('format')!r}, expected {FORMAT!r}. Write one with {kind.__name__}.save."
        )
    try:
        return _build(kind, json.loads(metadata["header"]), tensors)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{where} is damaged ({type(error).__name__}: {error}); use another copy of it."
        ) from error


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


def _build(kind: type[E], header: dict[str, Any], tensors: dict[str, Array]) -> E:
    """Return the model; what is wrong with it raises whatever error it comes to."""
    model: Any = kind(**{k: _unplain(v) for k, v in header["parameters"].items()})
    model._validate_params()
    model.coef_, model.intercept_ = tensors["coef"], tensors["intercept"]
    model.classes_ = _get_classes(header, tensors)
    _check_arrays(model.coef_, model.intercept_, model.classes_)
    model.n_features_in_ = model.coef_.shape[1]
    names = _strings(header["feature_names"], "feature names")
    if names:
        if len(names) != model.n_features_in_:
            raise ValueError(f"{len(names)} names for {model.n_features_in_} features")
        model.feature_names_in_ = np.array(names, dtype=object)
    primal, dual = header["certificate"]
    model.certificate_ = Certificate(float(primal), float(dual))
    model.history_ = [dict(check) for check in header["history"]]
    model.n_iter_ = int(header["n_iter"])
    return cast(E, model)


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
    labels = _strings(header["classes"], "labels")
    return np.array(labels, dtype=object if header["classes_kind"] == "O" else np.str_)


def _strings(values: Any, what: str) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"the {what} are not a list of strings")
    return values


def _plain(name: str, value: Any) -> Any:
    """Return a parameter as JSON can hold it."""
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
