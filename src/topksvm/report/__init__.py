"""One self-contained page about a run: tables, curves, and an explorer of ambiguous classes."""

from topksvm.report._explorer import explore as explore
from topksvm.report._page import write_report

__all__ = ["write_report"]
