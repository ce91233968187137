"""`glow-high-to-glow-low`: from operators on tensors to instructions on addresses (Glow's IRGen)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, LocationAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass

from glow_mlir.analysis.samples import samples_of
from glow_mlir.constants.storage import Storage, scalar_attribute
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp, operand_groups
from glow_mlir.dialects.glow_high.call import CallOp
from glow_mlir.dialects.glow_high.control_flow import IfOp, YieldOp
from glow_mlir.dialects.glow_high.loop import LoopOp, Rows
from glow_mlir.dialects.glow_high.samples import Samples
from glow_mlir.dialects.glow_high.sizes import BindSymbolOp
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp, StorageOp
from glow_mlir.dialects.glow_low.body import YieldOp as BodyYieldOp
from glow_mlir.dialects.glow_low.control_flow import IfOp as LowIfOp
from glow_mlir.dialects.glow_low.host import CallOp as LowCallOp
from glow_mlir.dialects.glow_low.instructions import instruction_of
from glow_mlir.dialects.glow_low.loop import LoopOp as LowLoopOp
from glow_mlir.dialects.glow_low.loop import WindowOp, motion_of, moves_of, part_of
from glow_mlir.dialects.glow_low.memory import (
    AllocOp,
    CopyOp,
    DeallocOp,
    FillOp,
    WeightOp,
    buffer_type,
    contiguous_strides,
    offset_of,
    root_of,
)
from glow_mlir.dialects.glow_low.memory import FuncOp as LowFuncOp
from glow_mlir.dialects.glow_low.sizes import BindSymbolOp as LowBindSymbolOp
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.shapes import Shape, element_of, has_static_shape, largest_shape, rank_of, sizes_of
from glow_mlir.dialects.sizes import RunTimeSizeError, largest
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.run_time_sizes import unsupported_at
from glow_mlir.ir.traversal import operations, own_operations, subtree
from glow_mlir.ir.value_names import value_name
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes
from glow_mlir.xdsl_patches.operations import cloned_region


@dataclass(frozen=True)
class GlowHighToGlowLowPass(ModulePass):
    """
    Convert each function of `glow_high` to one of `glow_low`: a buffer for each tensor, an instruction for each
    operator, a branch or loop for each.

    Weights are declared first; allocations live until the end of the function. A reshape or storage cast is a view,
    except for reshapes that merge or split sizes that are known only at run time. A save is a copy; so is a read of
    state whose value is still used after the state has changed. Instructions whose algorithms may combine rows record
    which rows belong to one sample (`samples`), unless sizes are known only at run time: each row may then belong to
    another one. In a module for several devices, functions that call others become host programs.
    """

    name = "glow-high-to-glow-low"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        block = op.body.block
        for function in high_functions(op):
            if function.device is not None:
                continue
            block.insert_op_before(FunctionConversion(function, storage).run(), function)
            block.erase_op(function)


@dataclass
class FunctionConversion:
    """The conversion of one function, with the buffer of each tensor."""

    source: FuncOp
    storage: Storage
    buffers: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    weights: dict[str, WeightOp] = field(default_factory=dict[str, WeightOp])
    declarations: list[Operation] = field(default_factory=list[Operation])
    program: list[Operation] = field(default_factory=list[Operation])
    samples: Mapping[SSAValue, Samples] = field(default_factory=dict[SSAValue, Samples])
    strides: Mapping[str, Shape] = field(default_factory=dict[str, Shape])
    """Strides of inputs that are laid out like outputs."""

    def run(self) -> LowFuncOp:
        """Convert the function."""
        source = self.source
        if has_static_sizes(source, self.storage):
            self.samples = samples_of(source, self.storage)
        else:
            self.strides = extended_strides(source, self.storage)
        target = LowFuncOp.named(source.sym_name.data, source.binding_names, source.location, source.assigned)
        self.program = self._converted(source.block)
        target.block.add_ops([*self.declarations, *self.program])
        return target

    def _converted(self, block: Block, finish: Callable[[], None] = lambda: None) -> list[Operation]:
        """Convert a block; `finish` appends to it, before its allocations are freed."""
        around, self.program = self.program, []
        for op in own_operations(block):
            try:
                self._convert(op)
            except RunTimeSizeError as error:
                raise unsupported_at(op, error) from error
        finish()
        allocations = [op for op in self.program if isinstance(op, AllocOp)]
        frees = [DeallocOp.of(op.result, location=op.location) for op in allocations]
        converted, self.program = [*self.program, *frees], around
        return converted

    def _convert(self, op: Operation) -> None:
        if isinstance(op, GetOp):
            self._get(op)
        elif isinstance(op, SaveOp):
            self._save(op)
        elif isinstance(op, BindSymbolOp):
            self.program.append(LowBindSymbolOp.to(op.symbol, self.buffers[op.count], op.location))
        elif isinstance(op, HighOp) and op.IS_VIEW:
            self._view(op)
        elif isinstance(op, HighOp):
            self._instruction(op)
        elif isinstance(op, CallOp):
            self._call(op)
        elif isinstance(op, IfOp):
            self._branch(op)
        elif isinstance(op, LoopOp):
            self._loop(op)
        else:
            assert isinstance(op, YieldOp), op.name

    def weight(self, name: str, user: Operation) -> SSAValue:
        """The buffer of storage `name`, declared once."""
        if name not in self.weights:
            op = self.storage.by_name[name]
            assert isinstance(op, StorageOp)
            self.weights[name] = WeightOp.of(op, op.location, self.strides.get(name))
            hint = user.results[0].name_hint if user.results else None
            self.weights[name].result.name_hint = hint or value_name(name)
            self.declarations.append(self.weights[name])
        return self.weights[name].result

    def _get(self, op: GetOp) -> None:
        buffer = self.weight(op.storage_name, op)
        if is_overwritten(op):
            allocation = AllocOp.of(buffer_type(sizes_of(op.result), element_of(op.result)), op.location)
            self.program += [allocation, CopyOp.of(allocation.result, buffer, location=op.location)]
            buffer = allocation.result
            buffer.name_hint = op.result.name_hint
        self.buffers[op.result] = buffer

    def _save(self, op: SaveOp) -> None:
        target, source = self.weight(op.storage_name, op), self.buffers[op.input]
        if root_of(source) is not target:  # State that is saved unchanged is there already.
            self.program.append(CopyOp.of(target, source, location=op.location))

    def _view(self, op: HighOp) -> None:
        (result,) = op.results
        source, sizes, element = self.buffers[op.operands[0]], sizes_of(result), element_of(result)
        if not splits_alike(sizes_of(source), sizes):
            self._instruction(op)
            return
        # Buffers that move are dense, and so are those in which they move.
        dense = contiguous_strides(tuple(map(largest, sizes)))
        strides, offset = (dense, offset_of(source)) if moves_of(source) else (None, 0)
        view = part_of(source, buffer_type(sizes, element, strides, offset), op.location)
        self._keep(result, view.result)
        self.program.append(view)

    def _instruction(self, op: HighOp) -> None:
        results = [self._allocate(result, op.location) for result in op.results]
        inputs = [[self.buffers[value] for value in group if value is not None] for _, group in operand_groups(op)]
        properties = {name: value for name, value in op.properties.items() if name != "operandSegmentSizes"}
        if op.COMBINES_ROWS and op.results[0] in self.samples:
            rows = rank_of(op.results[0]) - 1
            properties["samples"] = to_attribute(self.samples[op.results[0]].runs(rows))
        instruction = instruction_of(type(op)).of(*results, *inputs, properties=properties, location=op.location)
        for region in op.regions:
            instruction.add_region(cloned_region(region))
        self.program.append(instruction)

    def _call(self, op: CallOp) -> None:
        """
        Convert a call: results are in the memory of the callee's device, except outputs, which it writes directly.
        """
        callee = op.function(self.storage.module)
        assert callee is not None
        device = "" if callee.device is None else callee.device.data
        for result in op.values:
            saved = next((use.operation for use in result.uses if isinstance(use.operation, SaveOp)), None)
            if saved is not None:
                self.buffers[result] = self.weight(saved.storage_name, saved)
                continue
            type_ = buffer_type(sizes_of(result), element_of(result))
            self.program.append(AllocOp.of(type_, op.location, device))
            self._keep(result, self.program[-1].results[0])
        targets, sources = ([self.buffers[value] for value in values] for values in (op.values, op.arguments))
        self.program.append(LowCallOp.to(op.callee_name, targets, sources, device, op.location))

    def _branch(self, op: IfOp) -> None:
        """Convert a branch: both regions write the values that they yield to the buffers of the results."""
        results = [self._allocate(result, op.location) for result in op.results]
        branch = LowIfOp.of(self.buffers[op.condition], op.location)
        for region, target in zip(op.regions, branch.regions, strict=True):
            target.block.add_ops(self._converted(region.block, partial(self._carry, op.yielded(region), results, op)))
        self.program.append(branch)

    def _loop(self, op: LoopOp) -> None:
        """
        Convert a loop, with a buffer for each carried value, which starts with the initial value and ends as the
        result.

        At its end, each trip copies the values that it yields to these buffers, and to that of the condition; it also
        counts trips if their number is used. Windows move over the tensors of which each trip reads or writes a row.
        """
        carried = [
            self._initialized(value, argument, op) for value, argument in zip(op.initial, op.carried, strict=True)
        ]
        condition = None if op.condition is None else self._initialized(op.condition, None, op)
        number = self._counter(op) if op.index.uses else None
        trips = op.size_of_trips if op.trip_count is None else self.buffers[op.trip_count]
        stacks = [Rows(self._allocate(rows.value, op.location), rows.reversed) for rows in op.stacks]
        if condition is not None:
            for rows in stacks:
                self._zero(rows.value, op.location)
        loop = LowLoopOp.of(trips, op.location, condition)
        scanned = [self._window(self.buffers[rows.value], rows, loop) for rows in op.over]
        for row, window in zip(op.rows, scanned, strict=True):
            self._keep(row, window.result)
        written = [self._window(rows.value, rows, loop) for rows in stacks]
        targets = [*([] if condition is None else [condition]), *carried, *(window.result for window in written)]
        loop.block.add_ops([*scanned, *written])

        def finish() -> None:
            self._carry(op.yielded(op.body), targets, op)
            if number is not None:
                self.program.append(increment(number, op.location))

        loop.block.add_ops(self._converted(op.body.block, finish))
        self.program.append(loop)
        for result, buffer in zip(op.finals, carried, strict=True):
            self._keep(result, buffer)

    def _window(self, buffer: SSAValue, rows: Rows, loop: LowLoopOp) -> WindowOp:
        """The row of a dense buffer that each trip of a loop uses; the buffer may move with enclosing loops."""
        trips, *sizes = sizes_of(buffer)
        shape = tuple(map(largest, sizes))
        step = math.prod(shape)
        first = offset_of(buffer) + ((largest(trips) - 1) * step if rows.reversed else 0)
        type_ = buffer_type(tuple(sizes), element_of(buffer), contiguous_strides(shape), first)
        moves = [*motion_of(buffer).items(), (loop.index, -step if rows.reversed else step)]
        return WindowOp.of(root_of(buffer), moves, type_, loop.location)

    def _initialized(self, initial: SSAValue, argument: SSAValue | None, op: LoopOp) -> SSAValue:
        """A buffer for a carried value, which starts with the initial value."""
        buffer = self._allocate(initial if argument is None else argument, op.location, keep=argument is not None)
        self.program.append(CopyOp.of(buffer, self.buffers[initial], location=op.location))
        return buffer

    def _counter(self, op: LoopOp) -> SSAValue:
        """A buffer that counts trips, initialized with 0."""
        counter = self._allocate(op.index, op.location)
        self._zero(counter, op.location)
        return counter

    def _zero(self, buffer: SSAValue, location: LocationAttr) -> None:
        """Fill a buffer with zeros."""
        element = element_of(buffer)
        zero = scalar_attribute(numpy_dtype(element).type(0), element)
        self.program.append(FillOp.of([buffer], properties={"value": zero}, location=location))

    def _carry(self, yielded: Sequence[SSAValue], targets: Sequence[SSAValue], op: Operation) -> None:
        """
        Copy the values that a region yields to buffers outside, as if all at once.

        Each source is copied before it is overwritten; cycles are broken by another buffer.
        """
        sources = [self.buffers[value] for value in yielded]
        left = [(source, target) for source, target in zip(sources, targets, strict=True) if source is not target]
        while left:
            free = (move for move in left if not any(root_of(other[0]) is move[1] for other in left if other != move))
            source, target = next(free, left[0])
            left.remove((source, target))
            for number, (other, position) in enumerate(left):
                if root_of(other) is target:
                    aside = AllocOp.of(buffer_type(sizes_of(other), element_of(other)), op.location)
                    self.program += [aside, CopyOp.of(aside.result, other, location=op.location)]
                    left[number] = (aside.result, position)
            self.program.append(CopyOp.of(target, source, location=op.location))

    def _allocate(self, tensor: SSAValue, location: LocationAttr, keep: bool = True) -> SSAValue:
        """Allocate a buffer of a tensor's type; with `keep`, it becomes the tensor's buffer."""
        allocation = AllocOp.of(buffer_type(sizes_of(tensor), element_of(tensor)), location)
        self.program.append(allocation)
        if keep:
            self._keep(tensor, allocation.result)
        return allocation.result

    def _keep(self, tensor: SSAValue, buffer: SSAValue) -> None:
        buffer.name_hint = tensor.name_hint
        self.buffers[tensor] = buffer


def splits_alike(source: Sizes, result: Sizes) -> bool:
    """
    Whether a reshape from one to the other leaves elements in place in buffers for the largest shapes.

    It does if each axis whose size is known only at run time stays an axis, and other axes split and merge between
    these.
    """
    return _runs_of_numbers(source) == _runs_of_numbers(result)


def _runs_of_numbers(sizes: Sizes) -> list[Size]:
    """The sizes, with neighbouring numbers multiplied."""
    runs: list[Size] = [1]
    for size in sizes:
        if isinstance(size, int):
            runs[-1] = size * runs[-1]
        else:
            runs += [size, 1]
    return runs


def has_static_sizes(function: FuncOp, storage: Storage) -> bool:
    """Whether all sizes in a function are numbers: symbols come from its bindings, or are bound inside."""
    bound = all(has_static_shape(storage.by_name[name].tensor_type) for name in function.binding_names)
    return bound and not any(isinstance(op, BindSymbolOp) for op in operations(function))


def extended_strides(function: FuncOp, storage: Storage) -> dict[str, Shape]:
    """
    Input that an output begins with → the strides of the output, so that both can share memory.

    This is for values that grow from call to call, such as the keys and values of a decoder, if the size of the growing
    axis is known only at run time.
    """
    found: dict[str, Shape] = {}
    for save in own_operations(function.block):
        producer = save.input.owner if isinstance(save, SaveOp) else None
        first = producer.extended() if isinstance(producer, HighOp) else None
        if first is None or not isinstance(producer, HighOp) or not isinstance(get := first.owner, GetOp):
            continue
        given = storage.by_name[get.storage_name]
        if isinstance(given, PlaceholderOp) and given.role == "input":
            found.setdefault(get.storage_name, contiguous_strides(largest_shape(producer.results[0])))
    return found


def increment(counter: SSAValue, location: LocationAttr) -> StackOp:
    """The instruction that adds 1 to the only element of a buffer of i64."""
    sum_ = StackOp.over([counter], [counter], [AffineMap(0, 0, ())] * 2, 0, location)
    properties = {"value": IntegerAttr(1, i64)}
    one = arith.ConstantOp.create(properties=properties, result_types=[i64], location=location)
    total = arith.AddiOp.create(
        operands=[sum_.block.args[0], one.result],
        properties={"overflowFlags": arith.IntegerOverflowAttr("none")},
        result_types=[i64],
        location=location,
    )
    yielded = BodyYieldOp.create(operands=[total.result], location=location)
    sum_.block.add_ops([one, total, yielded])
    return sum_


def is_overwritten(read: GetOp) -> bool:
    """Whether the value of a read is used, itself or reshaped, after a save to its storage."""
    if read.mutable is None:
        return False
    aliases: set[SSAValue] = {read.result}
    saved = False
    op = read.next_op
    while op is not None:
        if any(value in aliases for inner in subtree(op) for value in inner.operands):
            if saved:
                return True
            if isinstance(op, HighOp) and op.IS_VIEW:
                aliases.add(op.results[0])
        saved |= isinstance(op, SaveOp) and op.storage_name == read.storage_name
        op = op.next_op
    return False
