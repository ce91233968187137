"""Reverse mode on a graph: from the cotangent of a value to those of the values that it is computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import cast

from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.dialects.lean_operation import previous_of
from glow_mlir.dialects.shapes import element_of
from glow_mlir.differentiation.contributions import Contribution, Contributions
from glow_mlir.differentiation.elementwise import elementwise
from glow_mlir.differentiation.expressed import expressed
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import GRADIENTS
from glow_mlir.support.dataclass import dataclass


@dataclass
class Differentiator:
    """
    Computes cotangents of `sources` in front of an operation, from those that `add` tells.

    Values that depend on no source get none.
    """

    anchor: Operation
    storage: Storage
    sources: Sequence[SSAValue]
    _cotangents: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    _active: set[SSAValue] = field(default_factory=set[SSAValue])
    """The values that depend on a source."""

    def add(self, value: SSAValue, cotangent: SSAValue, emit: Emitter) -> None:
        """A contribution to the cotangent of a value."""
        known = self._cotangents.get(value)
        self._cotangents[value] = cotangent if known is None else emit(AddOp, known, cotangent)

    def run(self, target: SSAValue, cotangent: SSAValue, since: Operation | None = None) -> list[SSAValue | None]:
        """
        The cotangent of each source, `None` where it has no influence; only operations behind `since` are passed.

        Raises `UnsupportedError` for an operator in between that has no gradient.
        """
        ops = list(_backward(self.anchor, since))
        self._active = _dependent(self.sources, reversed(ops))
        if target in self._active:
            self._cotangents[target] = cotangent
        for op in ops:
            self._visit(op)
        return [self._cotangents.get(source) for source in self.sources]

    def _visit(self, op: Operation) -> None:
        """Hand the cotangents of the results of an operation on to its operands."""
        given = [self._cotangents.get(result) for result in op.results]
        if not any(cotangent is not None for cotangent in given) or not any(map(self._is_wanted, op.operands)):
            return
        assert isinstance(op, HighOp)
        emit = Emitter(self.anchor, self.storage, location=op.location)
        found = _rule(op)(op, given[0] if len(given) == 1 else tuple(given), emit)
        for name, group in op.operand_groups():
            contributions = found.get(name)
            if contributions is None:
                continue
            listed = cast(
                "Sequence[Contribution]", contributions if isinstance(contributions, Sequence) else [contributions]
            )
            for value, contribution in zip(group, listed, strict=True):
                if value is not None and self._is_wanted(value) and (cotangent := contribution()) is not None:
                    self.add(value, cotangent, emit)

    def _is_wanted(self, value: SSAValue) -> bool:
        return value in self._active and is_float(element_of(value))


def _backward(anchor: Operation, since: Operation | None) -> Iterator[Operation]:
    """The operations in front of another one in its block, the last one first, up to one without that."""
    op = previous_of(anchor)
    while op is not None and op is not since:
        before = previous_of(op)
        yield op
        op = before


def _dependent(sources: Iterable[SSAValue], ops: Iterable[Operation]) -> set[SSAValue]:
    """The sources, and what operations compute from them, in order."""
    found = set(sources)
    for op in ops:
        if not found.isdisjoint(op.operands):
            found.update(op.results)
    return found


def _rule(op: HighOp) -> Callable[..., Contributions]:
    """The gradient function of an operator; raises `UnsupportedError` where it has none."""
    if (rule := GRADIENTS.get(type(op))) is not None:
        return rule
    if isinstance(op, Elementwise):
        return elementwise
    if isinstance(op, Expressed | GenericOp):
        return expressed
    hint = "differentiate with regard to what comes behind it"
    raise UnsupportedError(
        f"{op.name.removeprefix('glow_high.')} has no gradient", node=location_name(op.location), hint=hint
    )
