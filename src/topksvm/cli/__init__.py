"""The command line: ``topksvm COMMAND``."""

from topksvm.cli._main import main

__all__ = ["main"]
