"""The form of an operator or instruction: everything that determines how it is executed, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from glow_mlir.analysis.accesses import is_written
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.storage import PlaceholderOp
from glow_mlir.dialects.glow_low.memory import WeightOp, root_of
from glow_mlir.dialects.scalar_parameters import number_of_constant
from glow_mlir.dialects.target import Target
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.identity import number_of
from glow_mlir.xdsl_patches.operations import operands_of

Answer = TypeVar("Answer")

Form = tuple[Hashable, ...]
"""Equal for instructions that are executed alike, such as those of copies of a repeated block."""


def form_of(op: Operation, storage: Storage | None = None) -> Form:
    """
    The form of an operation: its kind, properties, types of operands and results, bodies, and which operands are the
    same value or lie in the same memory.

    With `storage`, it also says which operands are constants, or state that the function does not change. Locations,
    names and the contents of constants are left out. For scalars in bodies that may be parameters of code, it has only
    the properties on which code depends.
    """
    found: list[Hashable] = [type(op)]
    roots: dict[SSAValue, int] = {}
    for value in operands_of(op):
        root = root_of(value)
        found.append(roots.setdefault(root, len(roots)))
        if isinstance(root.owner, WeightOp):
            found += (number_of(root.type), storage and _content(root, root.owner, storage))
    _append(op, {}, found)
    return tuple(found)


State = tuple[Operation, Sequence[SSAValue], Sequence[Attribute], Sequence[Region], Mapping[str, Attribute]]
"""The state of an operation at some time; none of it is changed in place."""


class ByForm(Generic[Answer]):
    """Answers about operations, cached by their forms, for one target at a time."""

    def __init__(self) -> None:
        self._known: dict[Form, Answer] = {}
        self._target: Target | None = None

    def once(
        self, op: Operation, find: Callable[[], Answer], storage: Storage | None = None, target: Target | None = None
    ) -> Answer:
        """The answer of `find` for an operation, or its earlier one for an operation of the same form."""
        if target is not self._target:
            self._target, self._known = target, {}
        form = form_of(op, storage)
        if form not in self._known:
            self._known[form] = find()
        return self._known[form]


class Latest(Generic[Answer]):
    """The answer for the latest operation, since several questions about one operation follow each other."""

    def __init__(self) -> None:
        self._found: tuple[State, Answer] | None = None

    def of(self, op: Operation, find: Callable[[], Answer]) -> Answer:
        """The answer of `find` for an operation, or the last one if it was for the same operation in the same state."""
        operands = operands_of(op)
        state = op, operands, tuple([value.type for value in operands]), op.regions, dict(op.properties)
        if self._found is None or self._found[0] != state:
            self._found = state, find()
        return self._found[1]


def _content(root: SSAValue, weight: WeightOp, storage: Storage) -> Hashable:
    """The kind of a buffer's content, and whether it is state that is written."""
    found = storage.by_name.get(weight.storage_name)
    return type(found), isinstance(found, PlaceholderOp) and found.state is not None and is_written(root)


def _append(op: Operation, values: dict[SSAValue, int], found: list[Hashable]) -> None:
    """Append the form of an operation to `found`; `values` are numbered in the order in which they occur."""
    operands = operands_of(op)
    found += (len(operands), len(op.regions))
    for name, attribute in op.properties.items():
        found += (name, number_of(attribute))
    for value in operands:
        found += (values.setdefault(value, len(values)), number_of(value.type))
    _append_values(op.results, values, found)
    for region in op.regions:
        _append_region(region, values, found)


def _append_region(region: Region, values: dict[SSAValue, int], found: list[Hashable]) -> None:
    for block in region.blocks:
        found += (Block, len(block.args))
        _append_values(block.args, values, found)
        for op in own_operations(block):
            found.append(type(op))
            if isinstance(op, ConstantOp):  # Layers of a quantized network differ only in these.
                found.append(number_of_constant(op))
                _append_values(op.results, values, found)
            else:
                _append(op, values, found)
    found.append(Region)


def _append_values(defined: Iterable[SSAValue], values: dict[SSAValue, int], found: list[Hashable]) -> None:
    for value in defined:
        values[value] = len(values)
        found.append(number_of(value.type))
