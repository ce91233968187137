"""`lower`: replace operators that the backend does not support by simpler ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from glow_mlir.backends.interface import Backend, get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.storage import FunctionOp, SplatOp
from glow_mlir.dialects.shapes import element_of, is_empty, shape_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Kinds, Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.registry import LOWERINGS
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.lowerings.expressions import lowered


class LowerToNothing(Pattern):
    """Replace an operator whose results have no elements by splats: lowerings may assume elements."""

    @rooted
    def match_and_rewrite(self, op: HighOp, rewriter: Rewriter, /) -> None:
        backend = rewriter.analysis(backend_of)
        if isinstance(op, SplatOp) or not all(map(is_empty, op.results)) or backend.supports(op):
            return
        emit = rewriter.emit
        rewriter.replace(op, (), [emit.splat(0, element_of(result), shape_of(result)) for result in op.results])


@dataclass(frozen=True)
class Lowering(Pattern):
    """Apply the registered lowering of an operator that the backend does not support."""

    name: str
    operator: type[Operation]
    emit: Callable[[Operation, Emitter], SSAValue | Sequence[SSAValue]]

    @property
    def roots(self) -> Kinds:
        return (self.operator,)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        assert isinstance(rewriter, Rewriter)
        if type(op) is not self.operator or rewriter.analysis(backend_of).supports(op):
            return
        values = self.emit(op, rewriter.emit)
        if any(is_same(new, op) for new in rewriter.created):
            rewriter.discard()  # No progress: the operator stays, and `verify-lowered` reports it.
        else:
            rewriter.replace(op, (), [values] if isinstance(values, SSAValue) else values)


class LowerExpression(Pattern):
    """
    Lower an operator defined by an expression, without a lowering of its own, to the operators of that expression.
    """

    @rooted
    def match_and_rewrite(self, op: Expressed, rewriter: Rewriter, /) -> None:
        if type(op) in LOWERINGS.all() or rewriter.analysis(backend_of).supports(op):
            return
        value = lowered(op, rewriter.emit)
        if value is None or any(type(new) is type(op) for new in rewriter.created):
            rewriter.discard()
        else:
            rewriter.replace(op, (), [value])


@dataclass(frozen=True)
class LowerPass(PatternPass):
    """
    Lower operators that the backend does not support, until it supports all or no lowering is left (paper §3.4).

    Operators whose results have no elements become splats. Operators without a lowering stay; `verify-lowered` reports
    them.
    """

    name = "lower"

    def walks(self) -> tuple[Walk, ...]:
        return (lowerings(),)


@cache
def lowerings() -> Walk:
    """The walk that lowers, with one pattern per operator with a lowering."""
    patterns = [
        Lowering(f"lower-{operator.name.split('.', 1)[1].replace('_', '-')}", operator, emit)
        for operator, emit in LOWERINGS.all().items()
    ]
    return Walk((LowerToNothing(), *patterns, LowerExpression()), backward=True, recursive=True)


def backend_of(function: FunctionOp, storage: Storage) -> Backend:
    """The backend of a function."""
    return get_backend(function.target.backend)


def is_same(new: Operation, op: Operation) -> bool:
    """Whether a lowering returned the operator it was given."""
    alike = type(new) is type(op) and new.properties == op.properties
    return alike and list(new.operand_types) == list(op.operand_types)
