"""Numba in one place: the options of every kernel, the cache policy, the warm-up.

Kernels are ``nopython`` functions in which NaN and infinity behave as IEEE 754 says, so
certificates and projections can be trusted; the only liberty, and only where it is asked for, is
the order and fusion of the operations of a sum. They release the GIL; parallelism comes from
Python threads over rows (see :mod:`topksvm._threads`), not from Numba's threading layers, two of
which abort the process when used from several threads or after a fork.

Compiled code is cached on disk where Numba puts it: beside the sources if that folder can be
written, else in the user's cache, or in ``NUMBA_CACHE_DIR``. Numba looks only at the file that
holds a kernel, not at the kernels it calls in other files, so an edit there would leave stale
machine code behind. We therefore stamp every entry with a hash of all sources with kernels. Entries
that are damaged are compiled again (see :mod:`topksvm._kernel_cache`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from topksvm._kernel_cache import check_cache
from topksvm._kernel_compiler import InnerCompiler, Kernel

__all__ = [
    "KERNELS",
    "borrow",
    "cache_misses",
    "dispatched",
    "fusing_kernel",
    "inlined_kernel",
    "kernel",
    "on_warm_up",
    "prefetch",
    "summing_kernel",
    "warm_up",
]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "fastmath": False,
    # Division by zero gives inf or nan, as in NumPy, instead of a branch and a Python exception.
    "error_model": "numpy",
    # For functions that are passed to C, which none of ours is.
    "no_cfunc_wrapper": True,
}

KERNELS: list[Any] = []
"""Every kernel of the package, in order of definition."""

_WARM_UPS: list[Callable[[], None]] = []


def kernel(func: F) -> F:
    """Compile `func` on first use with the options of the package and keep it in the cache."""
    return _make(func, {})


def summing_kernel(func: F) -> F:
    """Compile `func` as :func:`kernel` does, but let sums be taken in any order.

    Dot products need it to use vector instructions. NaN and infinity still behave.
    """
    return _make(func, {"fastmath": {"reassoc", "contract", "nsz"}, "forceinline": True})


def fusing_kernel(func: F) -> F:
    """Compile `func` as :func:`kernel` does, but let a product and a sum be rounded once."""
    return _make(func, {"fastmath": {"contract"}})


def inlined_kernel(func: F) -> F:
    """Compile `func` as :func:`kernel` does, into its callers.

    A call hands over every array in seven words, and named tuples hold many: in a step of half a
    microsecond that is a good part of the time.
    """
    return _make(func, {"inline": "always"})


def _make(func: F, liberty: dict[str, Any]) -> F:
    options = OPTIONS | liberty
    entry = njit(**options)(func)
    if entry is func:  # Numba is switched off.
        return func
    check_cache(entry, _source_stamp())
    KERNELS.append(entry)
    inner = {name: option for name, option in options.items() if name != "cache"}
    inner["nopython"] = True
    made: Any = Kernel(py_func=func, targetoptions=inner, pipeline_class=InnerCompiler)
    made.entry = entry
    return cast(F, made)


def _inner(liberty: dict[str, Any]) -> Any:
    """Return the options of a function that is only called by kernels."""
    options = {name: option for name, option in OPTIONS.items() if name != "cache"}
    return options | liberty | {"pipeline_class": InnerCompiler}


def dispatched(stub: F) -> F:
    """Let kernels call `stub` as the static method of that name of its first argument.

    The argument is an instance of a ``NamedTuple`` class, so a kernel that is given one is compiled
    for its class, and the machine code is found in the cache by the next process (which is not so
    for compiled functions passed as arguments, nor for jitclasses).
    """

    @overload(stub, jit_options=_inner({"forceinline": True}), strict=False)
    def choose(subject: Any, *_: Any) -> Any:
        owner = getattr(subject, "instance_class", None)
        return getattr(owner, stub.__name__, None)

    return stub


def borrow(value: T) -> T:
    """Return an array, or a named tuple with arrays in it, without counting references to it.

    Numba counts a reference, atomically, wherever an array is taken out of a tuple or handed to a
    function; in steps of a microsecond that is a good part of the time. The caller of a kernel
    holds on to its arguments, so the kernel may do without.
    """
    return value


@intrinsic
def _without_count(typing_context: Any, value: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _strip(context, builder, signature.args[0], args[0])

    return value(value), generate


def _strip(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Set the owner of arrays to null, which Numba takes for memory that it does not manage."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
        parts = [
            _strip(context, builder, part_kind, part)
            for part_kind, part in zip(
                kind.types, cgutils.unpack_tuple(builder, value), strict=True
            )
        ]
        return context.make_tuple(builder, kind, parts)
    return value


@overload(borrow, jit_options=_inner({"forceinline": True}))
def _borrow(value: Any) -> Any:  # noqa: ARG001
    def generate(value: Any) -> Any:
        return _without_count(value)  # type: ignore[call-arg]

    return generate


def prefetch(array: Any, position: int) -> None:
    """Ask for the cache line of ``array.flat[position]``, which will be needed soon."""


@intrinsic
def _prefetch(typing_context: Any, array: Any, position: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        line = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [line.type, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # To read, into the second cache, as data.
        builder.call(function, [line, flag(0), flag(2), flag(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@overload(prefetch, jit_options=_inner({"forceinline": True}))
def _prefetch_in_kernel(array: Any, position: Any) -> Any:  # noqa: ARG001
    def generate(array: Any, position: Any) -> None:
        _prefetch(array, position)  # type: ignore[call-arg]

    return generate


def on_warm_up(func: Callable[[], None]) -> Callable[[], None]:
    """Register a call that touches the kernels of a module; see :func:`warm_up`."""
    _WARM_UPS.append(func)
    return func


def warm_up() -> None:
    """Compile, or load from the cache, the kernels of every module imported so far."""
    for touch in _WARM_UPS:
        touch()


def cache_misses() -> dict[str, int]:
    """Count, per kernel, the signatures compiled in this process for want of a cache entry."""
    counts = {k.py_func.__qualname__: sum(k.stats.cache_misses.values()) for k in KERNELS}
    return {name: count for name, count in counts.items() if count}


@cache
def _source_stamp() -> str:
    """Hash the sources that hold kernels, which are those that import this module."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        source = path.read_bytes()
        if b"topksvm._numba" in source or b"NamedTuple" in source:
            digest.update(str(path.relative_to(root)).encode())
            digest.update(source)
    return digest.hexdigest()
