"""Top-k multiclass SVMs, trained to a proven duality gap."""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import Any as _Any

__version__ = _version("topksvm")

# Imported when first used: the command line starts without compiling or loading kernels.
_HOMES = {
    "TopKLinearSVC": "topksvm.estimators",
    "TopKLinearSVCCV": "topksvm.estimators",
    "TopKSVC": "topksvm.estimators",
    "path": "topksvm.solvers",
    "solve": "topksvm.solvers",
}

__all__ = ["TopKLinearSVC", "TopKLinearSVCCV", "TopKSVC", "__version__", "path", "solve"]


def __getattr__(name: str) -> _Any:
    if name in _HOMES:
        return getattr(_import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'topksvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
