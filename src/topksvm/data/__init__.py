"""What a solver reads, in memory or on disk: rows, labels, weights, and kernel matrices."""

from topksvm.data._array_sources import file_of, is_real
from topksvm.data._gram import (
    TILE,
    ComputedGram,
    GivenGram,
    Gram,
    checked_values,
)
from topksvm.data._gram_checks import (
    check_diagonal,
    check_gram,
    check_sample,
    check_square,
    sample_rows,
    tolerance,
)
from topksvm.data._in_memory import in_memory
from topksvm.data._kernel_problem import KernelProblem, make_kernel_problem
from topksvm.data._problem import (
    Examples,
    Problem,
    check_norms,
    make_problem,
    read_only,
)
from topksvm.data._rows import (
    DenseRows,
    SparseRows,
    add_row,
    aligned_zeros,
    axpy,
    gather_rows,
    load_row,
    padded,
    scores_at,
    scores_of_all,
    squared_norms,
)
from topksvm.data._sources import (
    MIN_PIECE,
    RowSource,
    is_streamed,
    open_source,
)
from topksvm.data._streamed import StreamedProblem, make_streamed_problem
from topksvm.data._validation import (
    check_budget,
    check_labels,
    check_rows,
    check_weights,
)
from topksvm.data._windows import Window, WindowReader

__all__ = [
    "MIN_PIECE",
    "TILE",
    "ComputedGram",
    "DenseRows",
    "Examples",
    "GivenGram",
    "Gram",
    "KernelProblem",
    "Problem",
    "RowSource",
    "SparseRows",
    "StreamedProblem",
    "Window",
    "WindowReader",
    "add_row",
    "aligned_zeros",
    "axpy",
    "check_budget",
    "check_diagonal",
    "check_gram",
    "check_labels",
    "check_norms",
    "check_rows",
    "check_sample",
    "check_square",
    "check_weights",
    "checked_values",
    "file_of",
    "gather_rows",
    "in_memory",
    "is_real",
    "is_streamed",
    "load_row",
    "make_kernel_problem",
    "make_problem",
    "make_streamed_problem",
    "open_source",
    "padded",
    "read_only",
    "sample_rows",
    "scores_at",
    "scores_of_all",
    "squared_norms",
    "tolerance",
]
