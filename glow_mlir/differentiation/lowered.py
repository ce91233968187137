"""Gradients of operators by way of the simpler operators that they are lowered to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.differentiation.contributions import Contribution, Contributions
from glow_mlir.differentiation.differentiator import Differentiator
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import LOWERINGS

Composition = Callable[..., SSAValue | Sequence[SSAValue]]
"""`(op, emit)`: computes the results of an operator by other operators."""

Cotangents = SSAValue | tuple[SSAValue | None, ...]
"""The cotangent of a single result, or those of several."""


def by_lowering(op: HighOp, cotangent: Cotangents, emit: Emitter, replaces: bool = False) -> Contributions:
    """
    The contributions of the operators that an operator is lowered to.

    If that `replaces` the operator, the lowered form is computed once, and its gradients may keep more values;
    otherwise it is computed a second time.
    """
    lower = LOWERINGS.get(type(op))
    assert lower is not None, f"{op.name} has a lowering"
    return by_composition(op, cotangent, emit, lower, replaces)


def by_composition(
    op: HighOp, cotangent: Cotangents, emit: Emitter, composition: Composition, replaces: bool = False
) -> Contributions:
    """The contributions of operators that compute the results of another one, which they may replace."""
    values = list(dict.fromkeys(op.operands))

    @cache
    def cotangents() -> dict[SSAValue, SSAValue | None]:
        target = Emitter(op, emit.storage, location=emit.location) if replaces else emit
        before = target.anchor.prev_op
        made = composition(op, target)
        results = [made] if isinstance(made, SSAValue) else made
        given = [cotangent] if isinstance(cotangent, SSAValue) else cotangent
        targets = [(result, one) for result, one in zip(results, given, strict=True) if one is not None]
        if replaces:
            supersede(op, results)
        found = Differentiator(emit.anchor, emit.storage, values).run(targets, before, target.anchor)
        return dict(zip(values, found, strict=True))

    found: dict[str, list[Contribution]] = {}
    seen: set[SSAValue] = set()
    for name, group in op.operand_groups():
        # A value used as several operands has one cotangent for all of them.
        found[name] = [partial(_contribution, cotangents, None if value in seen else value) for value in group]
        seen.update(value for value in group if value is not None)
    return found


def supersede(op: HighOp, values: Sequence[SSAValue]) -> None:
    """Replace the results of an operator by values; the operator is left unused."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)


def _contribution(found: Callable[[], Mapping[SSAValue, SSAValue | None]], value: SSAValue | None) -> SSAValue | None:
    return None if value is None else found()[value]
