"""Reverse mode on a graph: from the cotangent of a value to those of the values it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, cast

from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.control_flow import RegionOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.dialects.glow_high.storage import GetOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.differentiation.contributions import Contribution
from glow_mlir.differentiation.elementwise import elementwise
from glow_mlir.differentiation.expressed import expressed
from glow_mlir.differentiation.quantization import stands_for_numbers
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import GRADIENTS
from glow_mlir.ir.rewriting import replace
from glow_mlir.ir.traversal import inner_blocks, subtree
from glow_mlir.support.dataclass import dataclass


@dataclass
class Differentiator:
    """
    Compute cotangents of `sources`, and emit them before an operation.

    Values that depend on no source get none.
    """

    anchor: Operation
    storage: Storage
    sources: Sequence[SSAValue]
    _cotangents: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    _active: set[SSAValue] = field(default_factory=set[SSAValue])
    """The values that depend on a source."""

    def _add(self, value: SSAValue, cotangent: SSAValue, emit: Emitter) -> None:
        """Add a contribution to the cotangent of a value."""
        known = self._cotangents.get(value)
        self._cotangents[value] = cotangent if known is None else emit(AddOp, known, cotangent)

    def run(
        self,
        targets: Iterable[tuple[SSAValue, SSAValue]],
        since: Operation | None = None,
        until: Operation | None = None,
    ) -> list[SSAValue | None]:
        """
        The cotangent of each source, given the cotangents of targets. Only operations after `since` and before `until`
        (by default, the insertion point) are traversed.

        The cotangent is `None` for a source without influence. Loops on the way are replaced by loops that store the
        initial values of each iteration.

        Raises `UnsupportedError` for an operator on the way that has no gradient.
        """
        ops = list(_backward(until or self.anchor, since))
        for op in ops:
            if isinstance(op, RegionOp):
                _read_outside(op, self.sources)
        self._active = _dependent(self.sources, reversed(ops))
        emit = Emitter(self.anchor, self.storage)
        for value, given in targets:
            if value in self._active:
                self._add(value, given, emit)
        for op in ops:
            self._visit(op)
        return [self._cotangents.get(source) for source in self.sources]

    def _visit(self, op: Operation) -> None:
        """Propagate the cotangents of an operation's results to its operands."""
        given = [self._cotangents.get(result) for result in op.results]
        wanted = [value for value in _read_by(op) if self._is_wanted(value)]
        if not wanted or all(cotangent is None for cotangent in given):
            return
        emit = Emitter(self.anchor, self.storage, location=op.location)
        if isinstance(op, RegionOp):
            for value, cotangent in _rule(op)(op, given, wanted, emit).items():
                self._add(value, cotangent, emit)
            return
        assert isinstance(op, HighOp)
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
                    self._add(value, cotangent, emit)

    def _is_wanted(self, value: SSAValue) -> bool:
        return value in self._active and (is_float(element_of(value)) or stands_for_numbers(value))


def _backward(anchor: Operation, since: Operation | None) -> Iterator[Operation]:
    """The operations before another in its block, in reverse order, back to but excluding `since`."""
    op = anchor.prev_op
    while op is not None and op is not since:
        before = op.prev_op
        yield op
        op = before


def _dependent(sources: Iterable[SSAValue], ops: Iterable[Operation]) -> set[SSAValue]:
    """The sources, and all values that operations compute from them, in order."""
    found = set(sources)
    for op in ops:
        if not found.isdisjoint(_read_by(op)):
            found.update(op.results)
    return found


def _read_by(op: Operation) -> Sequence[SSAValue]:
    """The operands of an operation, and the outer values read by its regions."""
    if not isinstance(op, RegionOp):
        return op.operands
    inner = list(subtree(op))
    defined: set[SSAValue] = {value for other in inner for block in inner_blocks(other) for value in block.args}
    defined.update(result for other in inner for result in other.results)
    return list(dict.fromkeys(value for other in inner for value in other.operands if value not in defined))


def _read_outside(op: RegionOp, sources: Iterable[SSAValue]) -> None:
    """Make regions read storage through the sources that represent it."""
    by_name = {source.owner.storage_name: source for source in sources if isinstance(source.owner, GetOp)}
    for inner in list(subtree(op)):
        if isinstance(inner, GetOp) and (source := by_name.get(inner.storage_name)) is not None:
            replace(inner, [source])


def _rule(op: HighOp | RegionOp) -> Callable[..., Any]:
    """The gradient function of an operator; raises `UnsupportedError` if it has none."""
    if (rule := GRADIENTS.get(type(op))) is not None:
        return rule
    if isinstance(op, Elementwise):
        return elementwise
    if isinstance(op, Expressed | GenericOp):
        return expressed
    hint = "differentiate with respect to a value after it"
    raise UnsupportedError(
        f"{op.name.removeprefix('glow_high.')} has no gradient", node=location_name(op.location), hint=hint
    )
