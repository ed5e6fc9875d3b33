"""What a solver reads, in memory or on disk: rows, labels, weights, and kernel matrices.

:class:`RowSource` is what rows need to be trained on wherever they are, :class:`Problem` what a
solver gets.
"""

from topksvm.data._array_sources import file_of as file_of, is_real as is_real
from topksvm.data._gram import (
    TILE as TILE,
    ComputedGram as ComputedGram,
    GivenGram as GivenGram,
    Gram as Gram,
    checked_values as checked_values,
)
from topksvm.data._gram_checks import (
    check_gram as check_gram,
    check_sample as check_sample,
    check_square as check_square,
    sample_rows as sample_rows,
    tolerance as tolerance,
)
from topksvm.data._kernel_problem import (
    KernelProblem as KernelProblem,
    make_kernel_problem as make_kernel_problem,
)
from topksvm.data._problem import (
    Examples as Examples,
    Problem,
    make_problem,
)
from topksvm.data._rows import (
    DenseRows as DenseRows,
    SparseRows as SparseRows,
    add_row as add_row,
    aligned_zeros as aligned_zeros,
    axpy as axpy,
    gather_rows as gather_rows,
    load_row as load_row,
    padded as padded,
    scores_at as scores_at,
    scores_of_all as scores_of_all,
)
from topksvm.data._sources import (
    MIN_PIECE as MIN_PIECE,
    RowSource,
    is_streamed as is_streamed,
    open_source as open_source,
)
from topksvm.data._streamed import (
    StreamedProblem as StreamedProblem,
    make_streamed_problem as make_streamed_problem,
)
from topksvm.data._validation import (
    check_budget as check_budget,
    check_labels as check_labels,
    check_rows as check_rows,
    check_weights as check_weights,
)
from topksvm.data._windows import Window as Window, WindowReader as WindowReader

__all__ = ["Problem", "RowSource", "make_problem"]
