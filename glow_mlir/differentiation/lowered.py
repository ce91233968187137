"""Gradients of operators by those of the simpler operators that they are lowered to."""

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
"""`(op, emit)`: computes the results of an operator by others."""

Cotangents = SSAValue | tuple[SSAValue | None, ...]
"""The cotangent of the only result, or that of each of several ones."""


def by_lowering(op: HighOp, cotangent: Cotangents, emit: Emitter, replaces: bool = False) -> Contributions:
    """
    The contributions of what the lowering of an operator emits.

    Where that `replaces` the operator, it is there once, and its own gradients may keep more of it; else it is computed
    again.
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
        # A value that is several operands has one cotangent for all of them.
        found[name] = [partial(_contribution, cotangents, None if value in seen else value) for value in group]
        seen.update(value for value in group if value is not None)
    return found


def supersede(op: HighOp, values: Sequence[SSAValue]) -> None:
    """Let values take the place of the results of an operator, which is left without a use."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)


def _contribution(found: Callable[[], Mapping[SSAValue, SSAValue | None]], value: SSAValue | None) -> SSAValue | None:
    return None if value is None else found()[value]
