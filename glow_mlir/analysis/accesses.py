"""
Memory accesses: which instruction reads and writes which allocation or weight, and when.

Positions count the ops of one block. Accesses in a nested region have the position of the enclosing op: a loop may run
its body any number of times, so that nothing inside is before or after the rest of it. All accesses to buffers declared
in the block are known; of buffers declared outside, only those inside the block.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from functools import cache, cached_property
from itertools import islice
from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from glow_mlir.analysis.extents import Extents
from glow_mlir.analysis.regions import Region, region_of, regions_overlap
from glow_mlir.dialects.glow_low.base import Instruction, QualifiedOp, Qualifier
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.loop import are_alike
from glow_mlir.dialects.glow_low.memory import AddressOp, AllocOp, DeallocOp, WeightOp, root_of
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.shapes import rank_of
from glow_mlir.ir.traversal import own_operations, subtree
from glow_mlir.support.dataclass import dataclass
from glow_mlir.xdsl_patches.operations import operands_of


@dataclass(eq=False)
class Access:
    """An access to memory: operand number `index` of `op`. Immutable, and compared by identity."""

    op: Operation
    index: int
    position: int
    """The position of the op of the block that `op` is, or is nested in."""
    reads: bool
    writes: bool

    @property
    def value(self) -> SSAValue:
        """The accessed buffer."""
        return operands_of(self.op)[self.index]

    @cached_property
    def region(self) -> Region:
        """The accessed region; computed once, so that a new operand needs a new access."""
        return region_of(self.value)


def accesses_of(op: Operation, position: int = 0) -> list[Access]:
    """
    The accesses of one op, nested regions included; declarations, views and deallocations have none.

    An op without qualifiers counts as reading and writing every buffer operand.
    """
    found: list[Access] = []
    for inner in subtree(op) if op.regions else (op,):
        states = _states_uses(type(inner))
        if states:
            for index, (qualifier, _) in enumerate(cast("QualifiedOp", inner).uses()):
                found.append(Access(inner, index, position, qualifier.reads, qualifier.writes))
        elif states is not None:
            for index, value in enumerate(operands_of(inner)):
                if isinstance(value.type, MemRefType):
                    found.append(Access(inner, index, position, reads=True, writes=True))
    return found


@cache
def _states_uses(kind: type[Operation]) -> bool | None:
    """Whether operations of a kind declare how they use their operands; `None` if they access no content."""
    if issubclass(kind, AllocOp | WeightOp | AddressOp | DeallocOp):
        return None
    return issubclass(kind, QualifiedOp)


@dataclass
class Accesses:
    """All accesses of a block and its nested regions, by allocation or weight."""

    positions: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """Op of the block → its position."""
    by_root: dict[SSAValue, list[Access]] = field(default_factory=dict[SSAValue, list[Access]])
    """Allocation or weight → its accesses, in order of position."""
    deallocs: dict[SSAValue, DeallocOp] = field(default_factory=dict[SSAValue, DeallocOp])
    """Allocation → its deallocation."""
    _extents: dict[SSAValue, Extents[Access]] = field(default_factory=dict[SSAValue, "Extents[Access]"])
    """Queried allocation or weight → its accesses, indexed by region."""

    @staticmethod
    def of(block: Block) -> Accesses:
        """Collect the accesses of a block in one walk."""
        found = Accesses()
        for position, op in enumerate(own_operations(block)):
            found.positions[op] = position
            if isinstance(op, DeallocOp):
                found.deallocs[op.buffer] = op
            for access in accesses_of(op, position):
                found.by_root.setdefault(root_of(access.value), []).append(access)
        return found

    def is_local(self, root: SSAValue) -> bool:
        """Whether an allocation or weight is declared in the block, so that nothing outside uses it."""
        return root.owner in self.positions

    def to(self, root: SSAValue) -> list[Access]:
        """The accesses to an allocation or weight, in order of position."""
        return self.by_root.get(root, [])

    def meeting(self, value: SSAValue) -> list[Access]:
        """The accesses that may overlap a buffer, in order of position."""
        return sorted(self.each_meeting(value), key=_position)

    def each_meeting(self, value: SSAValue) -> Iterator[Access]:
        """Like `meeting`, but lazily and in any order, for callers that need few of many."""
        region = region_of(value)
        return (access for access in self.near(root_of(value), region) if regions_overlap(access.region, region))

    def is_met(self, value: SSAValue, first: int, last: int, writes: bool = False) -> bool:
        """Whether accesses, or only writes, at positions from `first` up to `last` may overlap a buffer."""
        accesses, region = self.to(root_of(value)), region_of(value)
        begin = bisect_left(accesses, first, key=_position)
        for access in islice(accesses, begin, bisect_right(accesses, last, begin, key=_position)):
            if (access.writes or not writes) and regions_overlap(access.region, region):
                return True
        return False

    def near(self, root: SSAValue, region: Region) -> Iterable[Access]:
        """A superset of the accesses that may overlap a region of an allocation or weight, in any order."""
        accesses = self.to(root)
        if len(accesses) < FEW:
            return accesses
        if root not in self._extents:
            extents = self._extents[root] = Extents[Access]()
            for access in accesses:
                extents.add(access.region, access)
        return self._extents[root].near(region)

    def add(self, op: Operation) -> None:
        """Add the accesses of an op of the block whose operands are new."""
        for access in accesses_of(op, self.positions[op]):
            self._insert(root_of(access.value), access)

    def move(self, gone: SSAValue, root: SSAValue) -> None:
        """Move the accesses of `gone` to `root`; their operands are views of it now."""
        self._extents.pop(gone, None)
        for access in self.by_root.pop(gone, []):
            self._insert(root, replace(access))

    def forget(self, op: Operation) -> None:
        """Remove the accesses of an op of the block before it is erased."""
        position = self.positions[op]
        for root in {root_of(access.value) for access in accesses_of(op)}:
            accesses = self.to(root)
            first = bisect_left(accesses, position, key=_position)
            last = bisect_right(accesses, position, first, key=_position)
            for access in accesses[first:last]:
                if access.op is op and root in self._extents:
                    self._extents[root].remove(access.region, access)
            accesses[first:last] = [access for access in accesses[first:last] if access.op is not op]

    def _insert(self, root: SSAValue, access: Access) -> None:
        insort(self.by_root.setdefault(root, []), access, key=_position)
        if root in self._extents:
            self._extents[root].add(access.region, access)


def _position(access: Access) -> int:
    return access.position


FEW = 16
"""Maximum number of accesses for a linear search."""


def each_user(buffer: SSAValue) -> Iterator[QualifiedOp]:
    """Every op that uses the content of an allocation or weight, also through views."""
    for use in buffer.uses:
        if isinstance(use.operation, AddressOp):
            yield from each_user(use.operation.result)
        elif isinstance(use.operation, QualifiedOp) and not isinstance(use.operation, DeallocOp):
            yield use.operation


def is_written(buffer: SSAValue) -> bool:
    """Whether an op writes to an allocation, or to a weight, which its function declares once."""
    uses = (use for user in each_user(buffer) for use in user.uses())
    return any(qualifier.writes and root_of(value) is buffer for qualifier, value in uses)


def may_be_same_buffer(op: Instruction, output: int, input_: int) -> bool:
    """
    Whether @out operand number `output` may be the same buffer as @in operand number `input_`.

    It may if the instruction declares so, or if a stack or an epilogue walks both alike: each element is then read
    before it is written.
    """
    uses = op.named_uses()
    (name, qualifier, written), (other, other_qualifier, read) = uses[output], uses[input_]
    if qualifier is not Qualifier.OUT or other_qualifier is not Qualifier.IN or not are_alike(written, read):
        return False
    if isinstance(op, StackOp):
        return op.maps.data[output] == op.maps.data[input_]
    if isinstance(op, DerivedInstruction) and op.bodies:
        is_stored = name in (op.FIRST_RESULT, "epilogue_targets")
        return is_stored and other == "epilogue_sources" and _epilogue_map(op, output) == _epilogue_map(op, input_)
    return op.may_share(name, other)


def _epilogue_map(op: DerivedInstruction, index: int) -> AffineMap | None:
    """
    The map of operand number `index` in the epilogue: that of an epilogue operand, or the identity for the result.
    """
    names = [name for name, _, _ in op.named_uses()]
    body, name = op.epilogue, names[index]
    if body is None:
        return None
    position = index - names.index(name)
    if name == "epilogue_targets":
        return body.maps[position]
    if name == "epilogue_sources":
        return body.maps[len(body.targets) + position]
    return AffineMap.identity(rank_of(op.operands[index]))
