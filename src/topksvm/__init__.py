"""Top-k multiclass SVMs, trained to a proven duality gap."""

from importlib.metadata import version as _version

__version__ = _version("topksvm")

__all__ = ["__version__"]
