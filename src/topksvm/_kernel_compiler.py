"""How kernels are compiled that other kernels call; see :mod:`topksvm._numba`.

Numba optimises every function together with all that it calls, so what is called by a chain of
kernels would be optimised again for each link of the chain. Here a kernel is two functions: one is
called by other kernels, and only lowered to the intermediate code of LLVM, which its callers are
optimised with; the other is called by Python, and is optimised, compiled and cached. The first fit
of a process with an empty cache takes two thirds of the time.
"""

from __future__ import annotations

from typing import Any

from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

__all__ = ["InnerCompiler", "Kernel"]


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerOnly(NativeLowering):
    """Lower a function, and leave it to the kernels that call it to optimise it with them."""

    _name = "topksvm_lower_only"

    def run_pass(self, state: Any) -> bool:
        """Run the pass; see Numba's guide on customising the compiler."""
        state.flags.no_compile = True
        state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        super().run_pass(state)  # type: ignore[no-untyped-call]
        library = state.library
        library._optimize_final_module = lambda: None
        library._finalize_final_module = lambda: setattr(library, "_finalized", True)
        lowered = state["cr"]
        # Numba knows a function by its machine code, a built-in; this one stands for it.
        name: Any = [].append
        state.targetctx.insert_user_function(name, lowered.fndesc, [library])
        state["cr"] = lowered._replace(cfunc=name)
        return True


class InnerCompiler(CompilerBase):
    """Numba's compiler but for the last step."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes of a compilation."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        for place, (step, _) in enumerate(pipeline.passes):
            if step is NativeLowering:
                pipeline.passes[place] = (LowerOnly, "lowering, to be compiled by the callers")
        pipeline._finalized = False
        pipeline.finalize()
        return [pipeline]


class Kernel(CPUDispatcher):
    """A function that other kernels call, and `entry`, which Python calls."""

    entry: Any

    def __call__(self, *args: Any) -> Any:
        return self.entry(*args)
