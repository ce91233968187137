"""
Memory model of schedules: predicts which operators of a graph will share a buffer.

It predicts the low-level passes as far as the order of operators depends on them:

- Constants, inputs, outputs and state lie outside of the activations. A saved tensor lies in its output.
- An operator that is a view (`IS_VIEW`), and a slice with positive steps, lies in its operand.
- Operands of a concatenation, and the input of a constant pad, lie in its result; each tensor in at most one.
- An operator computes in place if it declares so (`INPLACE`; all elementwise ones), sizes are equal and the operand
  dies there. If nothing else uses the operand, both share a buffer in every order.
- A splat that only elementwise operators and pads read is an immediate in their code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field

from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator

from glow_mlir.analysis.program import Program, ScheduledStep
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.base import HighOp, operand_spans
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, SliceOp
from glow_mlir.dialects.glow_high.storage import GetOp, SaveOp, SplatOp
from glow_mlir.dialects.properties import text
from glow_mlir.dialects.scalar_body import is_elementwise
from glow_mlir.dialects.shapes import bytes_of, element_of
from glow_mlir.dialects.symbol_binding import SymbolBinding, used_symbols
from glow_mlir.ir.traversal import own_operations, subtree, within
from glow_mlir.support.dataclass import dataclass


def program_of(block: Block) -> Program:
    """Convert the operators of a block to steps, in the order of the block, with the buffers they will use."""
    return _Model(list(own_operations(block))).program()


@dataclass
class _Model:
    """The buffers of one block during their unification."""

    ops: list[Operation]
    position_of: dict[Operation, int] = field(default_factory=dict[Operation, int])
    host: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Tensor → the tensor that owns its buffer."""
    outside: set[SSAValue] = field(default_factory=set[SSAValue])
    """Tensors that own a buffer outside the activations."""

    def program(self) -> Program:
        """The whole block."""
        self.position_of = {op: number for number, op in enumerate(self.ops)}
        self._join()
        owners = [result for op in self.ops for result in op.results if self._root(result) is result]
        kept = [value for value in owners if value not in self.outside]
        buffers: dict[SSAValue, int] = {value: number for number, value in enumerate(kept)}
        order, binding = state_order(self.ops), symbol_order(self.ops)
        return Program(
            steps=[self._step(op, buffers, [*order.get(op, []), *binding.get(op, [])]) for op in self.ops],
            sizes=[bytes_of(value) for value in kept],
            roots=[self.position_of[op] for op in roots_of(self.ops)],
            preferences=list(self._preferences(order)),
        )

    def _root(self, value: SSAValue) -> SSAValue:
        """The tensor that owns the buffer of `value`."""
        root = value
        while root in self.host:
            root = self.host[root]
        while value is not root:
            self.host[value], value = root, self.host[value]
        return root

    def _join(self) -> None:
        self._views()
        self._outputs()
        for op in self.ops:
            if isinstance(op, ConcatOp):
                for part in op.parts:
                    self._position(part, op.result)
            elif isinstance(op, PadOp) and text(op.mode) == "constant":
                self._position(op.input, op.result)
        for op in self.ops:
            for result, operand in in_place_pairs(op):
                if operand.has_one_use() and self._root(result) is not self._root(operand):
                    self._position(operand, result)
                    break

    def _views(self) -> None:
        for op in self.ops:
            if _is_view(op):
                self.host[op.results[0]] = op.operands[0]
            elif isinstance(op, GetOp) or (isinstance(op, SplatOp) and all(map(_takes_number, _users(op.result)))):
                self.outside.add(op.results[0])

    def _outputs(self) -> None:
        accesses = Counter(op.storage_name for op in self.ops if isinstance(op, GetOp | SaveOp))
        for op in self.ops:
            if not isinstance(op, SaveOp):
                continue
            root = self._root(op.input)
            if accesses[op.storage_name] == 1 and bytes_of(root) == bytes_of(op.input):
                self.outside.add(root)

    def _position(self, value: SSAValue, target: SSAValue) -> None:
        """Place `value` in the buffer of `target`, if it fills its own buffer and is not placed yet."""
        root = self._root(value)
        if root not in self.outside and bytes_of(root) == bytes_of(value) and root is not self._root(target):
            self.host[root] = target

    def _step(self, op: Operation, buffers: dict[SSAValue, int], first: list[Operation]) -> ScheduledStep:
        operands = list(operands_of(op))
        before = [self.position_of[value.owner] for value in operands]
        writes = [self._root(result) for result in op.results]
        reads = [self._root(value) for value in operands]
        pairs = [(self._root(result), self._root(operand)) for result, operand in in_place_pairs(op)]
        if op.has_trait(IsTerminator):  # Yielded values come last.
            before += range(len(self.ops) - 1)
        return ScheduledStep(
            before=tuple(dict.fromkeys([*before, *(self.position_of[earlier] for earlier in first)])),
            writes=tuple(dict.fromkeys(buffers[root] for root in writes if root in buffers)),
            reads=tuple(dict.fromkeys(buffers[root] for root in reads if root in buffers)),
            shares=tuple((buffers[w], buffers[r]) for w, r in pairs if w in buffers and r in buffers and w is not r),
            result_bytes=0 if isinstance(op, GetOp) else sum(map(bytes_of, op.results)),
            is_view=_is_view(op),
        )

    def _preferences(self, order: dict[Operation, list[Operation]]) -> Iterator[tuple[int, int]]:
        """Prefer to run readers of state through views before it is overwritten, which avoids a copy."""
        for save, earlier in order.items():
            if isinstance(save, SaveOp):
                for read in earlier:
                    for value in _views_of(read.results[0]) if isinstance(read, GetOp) else ():
                        for user in _users(value):
                            if user is not save and (block := save.parent) and (own := within(block, user)):
                                yield self.position_of[own], self.position_of[save]


def _is_view(op: Operation) -> bool:
    return _is_same_memory(op) or (isinstance(op, SliceOp) and op.is_view)


def _is_same_memory(op: Operation) -> bool:
    return isinstance(op, HighOp) and op.IS_VIEW


def _users(value: SSAValue) -> Iterator[Operation]:
    return (use.operation for use in value.uses)


def _views_of(value: SSAValue) -> Iterator[SSAValue]:
    """A tensor and all that are its memory under another type."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        yield value
        waiting += [user.results[0] for user in _users(value) if _is_same_memory(user)]


def _takes_number(user: Operation) -> bool:
    return isinstance(user, PadOp) or is_elementwise(user)


def in_place_pairs(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Pairs (result, operand) of equal size that an operator lets share a buffer."""
    if not isinstance(op, HighOp) or not op.INPLACE:
        return
    names = [name for name, _ in op.get_irdl_definition().results]
    for output, input_ in op.INPLACE:
        result = op.results[names.index(output)]
        width, size = byte_width(element_of(result)), bytes_of(result)
        for span in operand_spans(op):
            if input_ in ("*", span.name):
                for operand in op.operands[span.start : span.stop]:
                    if bytes_of(operand) == size and byte_width(element_of(operand)) == width:
                        yield result, operand


def operands_of(op: Operation) -> Iterator[OpResult]:
    """The results of ops of the same block that `op` reads, nested regions included, in the order of operands."""
    block = op.parent_block()
    for inner in subtree(op):
        for value in inner.operands:
            if isinstance(value, OpResult) and value.owner.parent_block() is block:
                yield value


def symbol_order(ops: list[Operation]) -> dict[Operation, list[Operation]]:
    """For each op that uses symbols, nested regions included, the ops that bind them."""
    binding = {op.bound: op for op in ops if isinstance(op, SymbolBinding)}
    if not binding:
        return {}
    used = {op: {symbol for inner in subtree(op) for symbol in used_symbols(inner)} for op in ops}
    return {op: [binding[symbol] for symbol in symbols if symbol in binding] for op, symbols in used.items()}


def state_order(ops: list[Operation]) -> dict[Operation, list[Operation]]:
    """For each access to mutable storage, the earlier accesses to the same storage that it must follow."""
    before: dict[Operation, list[Operation]] = {}
    saves: dict[str, SaveOp] = {}
    reads: dict[str, list[Operation]] = {}
    for op in ops:
        if not isinstance(op, GetOp | SaveOp) or (isinstance(op, GetOp) and op.mutable is None):
            continue
        name = op.storage_name
        before[op] = [saves[name]] if name in saves else []
        if isinstance(op, GetOp):
            reads.setdefault(name, []).append(op)
        else:
            before[op] += reads.pop(name, [])
            saves[name] = op
    return before


def roots_of(ops: list[Operation]) -> list[Operation]:
    """
    The ops without dependents, in order, with saves of state at the end.

    The other ops can then read the old state in place.
    """
    state = {op.storage_name for op in ops if isinstance(op, GetOp) and op.mutable is not None}
    roots = [op for op in ops if isinstance(op, SaveOp) or not any(result.uses for result in op.results)]
    return sorted(roots, key=lambda op: isinstance(op, SaveOp) and op.storage_name in state)
