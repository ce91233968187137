"""`differentiate`: replace gradients by operators."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.gradient import GradientOp, VariablesOp
from glow_mlir.dialects.glow_high.saved import SavedOp
from glow_mlir.dialects.glow_high.storage import FuncOp
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir import statistics
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.rewriting import erase_dead, high_functions, replace
from glow_mlir.ir.traversal import all_operations
from glow_mlir.ir.universe import pass_class
from glow_mlir.support.dataclass import dataclass

BEFORE = tuple(
    "canonicalize fold-constants cse recognize-activations recognize-softmax recognize-normalization".split()
)
"""Passes that recognize functions decomposed by exporters, because their derivatives are simpler."""


@dataclass(frozen=True)
class DifferentiatePass(ModulePass):
    """
    Replace each `gradient` by operators that compute it, in reverse mode (paper §3.4).

    What the graph computes on the way is used as it is, so that liveness sees it. Gradients of gradients are
    derivatives of higher order: the first one is replaced first. The bodies of elementwise operators and of
    `generic` are differentiated symbolically; other operators have a function registered by `@gradient`. What a `saved`
    knows is not computed.
    """

    name = "differentiate"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        differentiated = [function for function in high_functions(op) if _gradients(function) or _saved(function)]
        if not differentiated:
            return
        for name in BEFORE:
            pass_class(name)().apply(ctx, op)
        storage = Storage(op)
        for function in differentiated:
            for gradient in _gradients(function):
                _expand(gradient, storage)
                statistics.count("gradients expanded")
            _put_saved(function)
            for inner in all_operations(function):
                if isinstance(inner, VariablesOp):
                    replace(inner, inner.values)
            erase_dead(function)


def _saved(function: FuncOp) -> bool:
    return any(isinstance(inner, SavedOp) for inner in all_operations(function))


def _put_saved(function: FuncOp) -> None:
    """Replace the operators that compute saved values by the saved values."""
    for op in [inner for inner in all_operations(function) if isinstance(inner, SavedOp)]:
        pairs = [*zip(op.computed, op.values, strict=True)]
        replace(op, list(op.values))
        for computed, value in pairs:
            computed.replace_all_uses_with(value)


def _gradients(function: FuncOp) -> list[GradientOp]:
    return [inner for inner in all_operations(function) if isinstance(inner, GradientOp)]


def _expand(op: GradientOp, storage: Storage) -> None:
    """Emit the operators of a gradient before it."""
    if not isinstance(op.parent_op(), FuncOp):
        hint = "ask for it in the function itself"
        node = location_name(op.location)
        raise UnsupportedError("a gradient inside of a branch or a loop is not supported", node=node, hint=hint)
    # Most modules request no gradient, and need none of these imports.
    from glow_mlir.differentiation.differentiator import Differentiator

    emit = Emitter(op, storage)
    seed = op.cotangent or emit.splat(1, op.target, sizes_of(op.target))
    found = Differentiator(op, storage, op.sources).run([(op.target, seed)])
    replace(
        op, [_zeros(source, emit) if value is None else value for source, value in zip(op.sources, found, strict=True)]
    )


def _zeros(like: SSAValue, emit: Emitter) -> SSAValue:
    """Zeros with the sizes of a source without influence."""
    return emit.splat(0, like, sizes_of(like))
