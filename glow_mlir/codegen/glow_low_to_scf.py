"""`glow-low-to-scf`: from allocated instructions to structured functions of the `llvm` dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field
from functools import cached_property
from itertools import groupby

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.llvm import FuncOp as LlvmFuncOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.backends.interface import Backend, backend_of
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import Param, define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder, VectorLength, vector_length
from glow_mlir.codegen.builder.partition import Partition
from glow_mlir.codegen.builder.types import i8, i32, i64, ptr
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.constant_data import ConstantData
from glow_mlir.codegen.instruction_functions import (
    instruction_function,
    kernel_of,
    not_failed,
    operands_of,
    private_to,
    readable_name,
    scalar_table,
    signature,
    symbols_of,
    takes_scalars,
)
from glow_mlir.codegen.instrumentation import Instrumentation
from glow_mlir.codegen.parallel_pool import RUN, STOP, WORK, emit_pool
from glow_mlir.codegen.selection.kernel import KernelCall, extents_at
from glow_mlir.codegen.selection.partitions import partitions_of
from glow_mlir.constants.index_ranges import failure_of
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.glow_low.base import Instruction, QualifiedOp
from glow_mlir.dialects.glow_low.control_flow import IfOp
from glow_mlir.dialects.glow_low.loop import LoopOp, WindowOp
from glow_mlir.dialects.glow_low.memory import AddressOp, AllocOp, DeallocOp, FuncOp, WeightOp, offset_of, root_of
from glow_mlir.dialects.glow_low.sizes import BindSymbolOp
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.shapes import element_of, rank_of
from glow_mlir.dialects.target import Target
from glow_mlir.errors import CompilerBugError, ModelError
from glow_mlir.ir.entries import symbols_in
from glow_mlir.ir.locations import source_location
from glow_mlir.ir.rewriting import functions, low_functions
from glow_mlir.ir.traversal import Scope, operations, own_operations
from glow_mlir.runtime.artifact import CANCELLED, WRONG_VECTORS
from glow_mlir.runtime.pool_layout import COUNT_BITS
from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Quotient, Size


@dataclass(frozen=True)
class GlowLowToScfPass(ModulePass):
    """
    Convert each allocated function to an entry `int32_t name(constants, bindings, activations, parallel)` of the `llvm`
    dialect, and each distinct instruction to a function that the entry calls.

    A partitioned instruction becomes one function for each axis along which it is partitioned; the function runs one
    part. The entry passes these functions to `parallel`, or runs all parts itself if that is null. The workers behind
    `parallel` are added to the module (`codegen.parallel_pool`).

    If functions have different targets, the module contains one module for each target.

    Storage leaves the module: its bytes are in the constants region, its types in the manifest. With `profile`, the
    entry stores the cycle counter around each instruction, to the binding after the last one. Without `pool`, callers
    of an entry provide the workers. Unless `cancellable` is false, entries with loops, or with instructions whose time
    depends on values, check a further binding: before each trip, and after each of these instructions, they return
    `CANCELLED` if somebody has written to the int32 there. With `instrument`, the entry calls the functions of the
    `glow_observer` in the last binding, before and after each instruction.
    """

    name = "glow-low-to-scf"

    profile: bool = False
    pool: bool = True
    cancellable: bool = True
    instrument: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            check_entry(function)
        made: dict[Target, ModuleBuilder] = {}
        for function in low_functions(op):
            target = function.target
            builder = made[target] = made.get(target) or ModuleBuilder(target)
            cancellable = self.cancellable and may_take_long(function)
            FunctionEmission(function, builder, self.profile, backend_of(function), self.instrument, cancellable).run()
        for builder in made.values():
            if self.pool and PARALLEL_FOR in builder.signatures:
                emit_pool(builder)
        op.attributes.clear()
        block = op.body.block
        for old in list(block.ops):
            block.erase_op(old, safe_erase=False)
        modules = [builder.module for builder in made.values()]
        if len(modules) > 1:
            block.add_ops(modules)
            return
        for module in modules:
            op.attributes |= module.attributes
            for new in list(module.body.block.ops):
                new.detach()
                block.add_op(new)


def check_entry(function: FunctionOp) -> None:
    """Raise `ModelError` for a function that cannot become machine code, or whose name is taken."""
    name, location = function.sym_name.data, source_location(function)
    if not isinstance(function, FuncOp) or "activations" not in function.properties:
        reason = "is not allocated" if isinstance(function, FuncOp) else "has operators, not instructions"
        hint = "run all passes up to 'allocate' first, as --stop-after allocated does"
        raise ModelError(f"@{name} {reason}", file=location, hint=hint)
    if name in (PARALLEL_FOR, RUN, WORK, STOP):
        raise ModelError(
            f"no entry is called '{name}'", file=location, hint="machine code defines a function of that name"
        )


def modules_of_targets(module: ModuleOp, targets: Mapping[str, Target]) -> dict[Target, ModuleOp]:
    """Target → the module of the `llvm` dialect that the pass made for it; `targets` holds the target of each entry."""
    parts = [op for op in module.body.block.ops if isinstance(op, ModuleOp)] or [module]
    found: dict[Target, ModuleOp] = {}
    for part in parts:
        names = [op.sym_name.data for op in part.body.block.ops if isinstance(op, LlvmFuncOp)]
        found |= {targets[name]: part for name in names if name in targets}
    return found


ENTRY = [Param(ptr, noalias=False)] * 4
"""The parameters of an entry."""

ENTRY_NAMES = ("constants", "bindings", "activations", "parallel")
"""The names of these parameters in text."""

PARALLEL_FOR = "parallel_for"
"""The function of the module through which entries run all parts of an instruction."""


PART_NAMES = ("data", "part", "worker")
"""The names of the parameters of the function of a part, in text."""


@dataclass(frozen=True)
class Task:
    """A function that runs one part, the number of parts, and how often all of them run."""

    function: str
    parts: int
    rounds: Size


@dataclass
class FunctionEmission:
    """Emission of one entry."""

    function: FuncOp
    module: ModuleBuilder
    profile: bool
    backend: Backend
    instrument: bool = False
    cancellable: bool = False
    cancelled: Value | None = None
    """The address of the cancellation flag, for entries that can be cancelled."""
    instrumentation: Instrumentation | None = None
    """Reports each instruction to a caller that asks for it."""
    callees: dict[Instruction, str | list[Task]] = field(default_factory=dict[Instruction, "str | list[Task]"])
    """Instruction → the function that executes it, or the tasks of its parts."""
    pointers: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    slots: dict[str, Value] = field(default_factory=dict[str, Value])
    """The addresses through which callers pass and get the values of symbols, by name."""
    extents: dict[str, Value] = field(default_factory=dict[str, Value])
    """The values of the symbols in sizes that are known so far, by name."""
    indices: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    """The trip number of each enclosing loop."""
    spans: int = 0
    """The index, in the array that parts get, of the address of their threads' time spans, with `profile`."""
    status: Value | None = None
    """The address of the entry's status: that of the first instruction that failed; `None` if none may fail."""

    @cached_property
    def statuses(self) -> dict[Instruction, int]:
        """Instruction that may fail → the status of the entry if it does."""
        return {op: number for number, op in enumerate(failing(self.function), 1)}

    def run(self) -> None:
        """Emit the entry and the functions of its instructions."""
        for op in operations(self.function):
            check_cancellation()
            if isinstance(op, Instruction) and op.NEEDS_KERNEL:
                self.callees[op] = (
                    self._tasks(op)
                    if partitions_of(op)
                    else instruction_function(self.module, kernel_of(op, self.backend), op, self._looks(op))
                )
        cut = [op for op, callee in self.callees.items() if not isinstance(callee, str)]
        value_count = max(map(self._values_of, cut), default=0)
        steps = executed(self.function)
        name, length = self.function.sym_name.data, vector_length(self.module.target)
        own = name if length is None else f"{name}.checked"
        internal = own != name
        with define_function(self.module, own, ENTRY, i32, internal=internal, names=ENTRY_NAMES) as (b, arguments):
            self._emit_pointers(b, *arguments[:3])
            data = b.stack(ptr, value_count + 1 + self.profile) if value_count else b.null()
            self.spans = value_count + 1
            self.slots = self._symbol_slots(b, arguments[1])
            if self.cancellable:
                self.cancelled = arguments[1].at(self._behind_stamps, ptr).load(ptr)
            if self.instrument:
                self.instrumentation = self._instrumentation(b, arguments[1])
            bound = {op.bound.name for op in operations(self.function) if isinstance(op, BindSymbolOp)}
            given = {name: slot for name, slot in self.slots.items() if name not in bound}
            self.extents.update((name, b.index(slot.load(i64))) for name, slot in given.items())
            if self.statuses:
                self.status = b.stack(i32, 1)
                self.status.store(b.constant(0, i32))
            for position, op in enumerate(steps):
                self._stamp(b, arguments[1], position)
                if self.profile and value_count:
                    spans = len(steps) + 1 + position * self.function.target.policy.threads * 2
                    data.at(self.spans, ptr).store(self._stamps(b, arguments[1]).at(spans, i64))
                self._execute(b, op, data, arguments[3])
            self._stamp(b, arguments[1], len(steps))
            b.give_back(b.constant(0, i32) if self.status is None else self.status.load(i32))
        if length is not None:
            _emit_checked(self.module, name, own, length)

    def _execute(self, b: Builder, op: QualifiedOp, data: Value, parallel: Value) -> None:
        """Run an instruction, or those in the regions of a branch or loop."""

        def run(block: Block) -> Sequence[Value]:
            for inner in executed(block):
                self._execute(b, inner, data, parallel)
            return ()

        if isinstance(op, IfOp):
            b.either(self._holds(b, op.condition), lambda: run(op.then_region.block), lambda: run(op.else_region.block))
            return
        if isinstance(op, LoopOp):
            self._loop(b, op, run)
            return
        if isinstance(op, BindSymbolOp):
            self._bind_symbol(b, op)
            return
        assert isinstance(op, Instruction)
        pointers = [self._pointer(b, value) for _, _, value in op.named_uses()]
        observer = self.instrumentation
        with nullcontext() if observer is None else observer.around(b, op, pointers):
            self._instruction(b, op, pointers, data, parallel)
        if self._looks(op):
            self._end_if_cancelled(b)

    def _looks(self, op: Instruction) -> bool:
        """Whether an instruction checks for cancellation."""
        return self.cancellable and op.NEEDS_KERNEL and kernel_of(op, self.backend).TIME_BY_VALUES

    def _end_if_cancelled(self, b: Builder) -> None:
        """Return from an entry that can be cancelled, if it has been."""
        if self.cancelled is not None:
            b.return_if(b.atomic_load(self.cancelled, i32, "monotonic").ne(0), b.constant(CANCELLED, i32))

    def _instruction(
        self, b: Builder, op: Instruction, pointers: Sequence[Value], data: Value, parallel: Value
    ) -> None:
        """Run an instruction on operands at these addresses."""
        callee = self.callees[op]
        b.scalars = b.symbol(scalar_table(self.module, op)) if takes_scalars(op) else None
        extents = [self.extents[name] for name in symbols_of(op)]
        cancelled = self.cancelled if self._looks(op) else None
        if isinstance(callee, str):
            failed = b.call(callee, [*pointers, *extents, *([] if cancelled is None else [cancelled])])
            if failed is not None:
                self._keep_status(b, failed, self.statuses[op])
            return
        failed = not_failed(b) if failure_of(op) else None
        behind = [value for value in (failed, b.scalars, cancelled) if value is not None]
        self._run_tasks(b, callee, [*pointers, *extents, *behind], data, parallel)
        if failed is not None:
            self._keep_status(b, failed.load(i32), self.statuses[op])

    def _bind_symbol(self, b: Builder, op: BindSymbolOp) -> None:
        """
        Assign a computed number to a symbol, and pass it to callers that ask for it.

        It is clamped to the range of the symbol, since a failed instruction may leave any number.
        """
        symbol = op.bound
        number = b.max(b.min(self._pointer(b, op.count).load(i64), symbol.most), symbol.least)
        if (slot := self.slots.get(symbol.name)) is not None:
            slot.store(number)
        self.extents[symbol.name] = b.index(number)

    def _keep_status(self, b: Builder, failed: Value, status: int) -> None:
        """Keep the status of a failed instruction, if it is the first."""
        assert self.status is not None
        with b.when(failed.ne(0) & self.status.load(i32).eq(0)):
            self.status.store(b.constant(status, i32))

    def _has_succeeded(self, b: Builder) -> Value:
        """Whether no instruction has failed so far."""
        assert self.status is not None
        return self.status.load(i32).eq(0)

    def _loop(self, b: Builder, op: LoopOp, run: Callable[[Block], Sequence[Value]]) -> None:
        """Run the body of a loop for each of its trips."""
        trips = None if op.size_of_trips is None else extents_at((op.size_of_trips,), self.extents)[0]
        if op.trip_count is not None:
            trips = self._pointer(b, op.trip_count).load(i64)
            if self.status is not None:  # A failed instruction may leave any number.
                trips = b.select(self._has_succeeded(b), trips, 0)
        if op.condition is None:
            assert trips is not None
            with b.loop(0, trips) as index:
                self._trip(b, op, index, run)
            return

        def again(index: Value) -> Value:
            assert op.condition is not None
            goes_on = self._holds(b, op.condition)
            if self.status is not None:
                goes_on = goes_on & self._has_succeeded(b)
            return goes_on if trips is None else (index < trips) & goes_on

        def trip(index: Value) -> Sequence[Value]:
            self._trip(b, op, index, run)
            return [index + 1]

        b.repeat([b.index(0)], trip, again)

    def _trip(self, b: Builder, op: LoopOp, index: Value, run: Callable[[Block], Sequence[Value]]) -> None:
        """Run one trip of a loop, unless the entry is cancelled."""
        self._end_if_cancelled(b)
        self.indices[op.index] = index
        run(op.block)

    def _holds(self, b: Builder, condition: SSAValue) -> Value:
        """Whether the only element of a buffer of i1, a byte, is true."""
        return self._pointer(b, condition).load(i8).ne(0)

    def _run_tasks(
        self, b: Builder, tasks: Sequence[Task], values: Sequence[Value], data: Value, parallel: Value
    ) -> None:
        """
        Run the parts of an instruction: all along one axis, then all along the next.

        They read `values` from `data`: addresses of operands, symbols, the addresses of the failure flag, of scalar
        parameters and of the cancellation flag, then the number of the round.
        """
        for position, value in enumerate(values):
            data.at(position, ptr).store(value)
        for rounds, group in groupby(tasks, lambda task: task.rounds):
            number = None if rounds == 1 else b.stack(b.index_type, 1)
            if number is not None:
                data.at(len(values), ptr).store(number)
            with b.loop(0, *extents_at((rounds,), self.extents)) as turn:
                if number is not None:
                    number.store(b.index(turn))
                for task in group:
                    if task.parts == 1:
                        b.call(task.function, [data, 0, 0])
                    else:
                        name = self._timed(task) if self.profile else task.function
                        b.call(PARALLEL_FOR, [parallel, b.symbol(name), data, task.parts])

    def _timed(self, task: Task) -> str:
        """
        The function of a part that also records when its thread began its first part of an instruction and ended its
        last.
        """

        def build(name: str) -> None:
            parameters = [ptr, i64, i64]
            function = define_function(self.module, name, parameters, internal=True, names=PART_NAMES)
            with function as (b, (data, part, worker)):
                spans = data.at(self.spans, ptr).load(ptr)
                begin, end = spans.at(b.index(worker) * 2, i64), spans.at(b.index(worker) * 2 + 1, i64)
                cycles = b.intrinsic("llvm.readcyclecounter", [], i64)
                begin.store(b.select(begin.load(i64).eq(0), cycles, begin.load(i64)))
                b.call(task.function, [data, part, worker])
                end.store(b.intrinsic("llvm.readcyclecounter", [], i64))
                b.give_back()

        return self.module.shared(("timed", task.function, self.spans), build, f"{task.function}.timed")

    def _emit_pointers(self, b: Builder, constants: Value, bindings: Value, activations: Value) -> None:
        """Compute the addresses of all allocations and weights, before the first call."""
        for op in operations(self.function):
            if isinstance(op, AllocOp):
                self.pointers[op.result] = activations.at(offset_in_region(op.offset), i8)
            elif isinstance(op, WeightOp):
                assert op.region is not None
                if op.region.data == "constants":
                    self.pointers[op.result] = constants.at(offset_in_region(op.offset), i8)
                else:
                    self.pointers[op.result] = bindings.at(offset_in_region(op.offset), ptr).load(ptr)

    def _symbol_slots(self, b: Builder, bindings: Value) -> dict[str, Value]:
        """The addresses of the symbols in sizes of bindings: an i64 each, by name, in the array after the bindings."""
        names = [symbol.name for symbol in symbols_in(self.function)]
        if not names:
            return {}
        extents = bindings.at(len(self.function.binding_names), ptr).load(ptr)
        return {name: extents.at(number, i64) for number, name in enumerate(names)}

    def _pointer(self, b: Builder, value: SSAValue) -> Value:
        """The address of a buffer's first element."""
        pointer = self.pointers[root_of(value)]
        if not isinstance(value.owner, AddressOp):
            return pointer
        size = byte_width(element_of(value))
        offset: Index = offset_of(value) * size
        if isinstance(value.owner, WindowOp):
            for index, step in zip(value.owner.indices, ints(value.owner.steps), strict=True):
                offset = self.indices[index] * (step * size) + offset
        return pointer.at(offset, i8)

    def _instrumentation(self, b: Builder, bindings: Value) -> Instrumentation:
        """The calls of the observer, which is the last binding."""
        observed = [op for op in operations(self.function) if isinstance(op, Instruction)]
        operands = max((len(list(op.named_uses())) for op in observed), default=1)
        addresses = b.stack(ptr, operands, self.module.target.pointer_bits // 8)
        axes = max((sum(rank_of(value) for _, _, value in op.named_uses()) for op in observed), default=1)
        extents = b.stack(i64, axes) if self.slots else b.null()
        name = self.function.sym_name.data
        data = ConstantData(self.module.target, f"{name}.data", self.module.module.body.block.add_op)
        observer = bindings.at(self._behind_stamps + self.cancellable, ptr).load(ptr)
        return Instrumentation(self.module, data, observer, addresses, extents, self.extents)

    @property
    def _behind_stamps(self) -> int:
        """The number of pointers in the bindings for storage, sizes and times."""
        return len(self.function.binding_names) + bool(self.slots) + self.profile

    def _stamp(self, b: Builder, bindings: Value, position: int) -> None:
        if self.profile:
            cycles = b.intrinsic("llvm.readcyclecounter", [], i64)
            self._stamps(b, bindings).at(position, i64).store(cycles)

    def _stamps(self, b: Builder, bindings: Value) -> Value:
        """
        The address of the recorded cycle counters: before each step and after the last, then, for each step and thread,
        when it began its first part and ended its last.
        """
        return bindings.at(len(self.function.binding_names) + bool(self.slots), ptr).load(ptr)

    def _tasks(self, op: Instruction) -> list[Task]:
        """The tasks of an instruction, in the order in which they run."""
        self.module.shared(PARALLEL_FOR, lambda name: _emit_parallel_for(self.module, name))
        kernel, parts = kernel_of(op, self.backend), partitions_of(op)
        return [
            Task(self._task_function(op, axis, parts[axis]), parts[axis], kernel.rounds(op, axis, self.module.target))
            for axis in kernel.AXES
            if axis in parts
        ]

    def _task_function(self, op: Instruction, axis: str, parts: int) -> str:
        """The function of one part along an axis, which reads the addresses of the operands from an array."""
        kernel, may_fail = kernel_of(op, self.backend), bool(failure_of(op))

        def build(name: str) -> None:
            parameters = [ptr, i64, i64]
            function = define_function(
                self.module, name, parameters, internal=True, passes=kernel.passes, names=PART_NAMES
            )
            with function as (b, (data, part, worker)):
                names, count = symbols_of(op), len(list(op.named_uses()))
                pointers = [data.at(position, ptr).load(ptr) for position in range(count)]
                symbols = {name: data.at(count + at, ptr).load(b.index_type) for at, name in enumerate(names)}
                quotients: dict[Quotient, Index] = {}
                operands = operands_of(op, pointers, symbols, quotients)
                private_to(b.index(worker), kernel, op, operands)
                behind = count + len(names)
                failed = data.at(behind, ptr).load(ptr) if may_fail else None
                if takes_scalars(op):
                    b.scalars = b.once("scalars", lambda: data.at(behind + may_fail, ptr).load(ptr))
                end = self._values_of(op)
                cancelled = data.at(end - 1, ptr).load(ptr) if self._looks(op) else None
                number = None
                if kernel.rounds(op, axis, self.module.target) != 1:
                    number = data.at(end, ptr).load(ptr).load(b.index_type)
                first = b.index(part & ((1 << COUNT_BITS) - 1))
                share = Partition(first, parts, first + b.index(b.lshr(part, COUNT_BITS)) + 1)
                kernel.emit(
                    KernelCall(b, self.module, op, operands, axis, share, number, symbols, failed, quotients, cancelled)
                )
                b.give_back()

        readable = f"{readable_name(kernel, op)}.{axis}"
        return self.module.shared((axis, self._looks(op), signature(kernel, op)), build, readable)

    def _values_of(self, op: Instruction) -> int:
        """The number of values that the parts of an instruction get, as described in `_run_tasks`."""
        flags = bool(failure_of(op)) + takes_scalars(op) + self._looks(op)
        return len(list(op.named_uses())) + len(symbols_of(op)) + flags


def _emit_checked(module: ModuleBuilder, name: str, inner: str, length: VectorLength) -> None:
    """Emit an entry that calls another one if vectors are as long as its code expects, else returns `WRONG_VECTORS`."""
    with define_function(module, name, ENTRY, result=i32, names=ENTRY_NAMES) as (b, arguments):
        units = b.intrinsic("llvm.vscale.i32", [], i32)
        is_right = units.eq(length.units) if length.exactly else units >= length.units

        def called() -> list[Value]:
            status = b.call(inner, arguments)
            assert status is not None
            return [status]

        b.give_back(*b.either(is_right, called, lambda: [b.constant(WRONG_VECTORS, i32)]))


def failing(function: FuncOp) -> list[Instruction]:
    """The instructions of a function that may fail, in order; the first has the status 1."""
    return [op for op in operations(function) if isinstance(op, Instruction) and failure_of(op)]


def _emit_parallel_for(module: ModuleBuilder, name: str) -> None:
    """
    Emit the function that runs all parts of a task, through the caller's `glow_parallel {run, context}` or alone.

    `run` is `void (void *context, void (*task)(void *data, int64_t part, int64_t worker), void *data, int64_t parts)`.
    """
    names = ("parallel", "task", "data", "parts")
    function = define_function(module, name, [ptr, ptr, ptr, i64], internal=True, inline=False, names=names)
    with function as (b, arguments):
        parallel, task, data, parts = arguments
        alone = b.address(parallel).eq(0)
        with b.when(alone):
            b.call_pointer(task, [data, (parts - 1) << COUNT_BITS, b.constant(0, i64)])
        with b.when(~alone):
            run, context = parallel.load(ptr), parallel.at(1, ptr).load(ptr)
            b.call_pointer(run, [context, task, data, parts])


def has_loops(function: FuncOp) -> bool:
    """Whether a function has loops, at whose trips it can be cancelled."""
    return any(isinstance(op, LoopOp) for op in operations(function))


def may_take_long(function: FuncOp) -> bool:
    """Whether a function has loops, or instructions whose time depends on values, so that it can be cancelled."""
    backend = backend_of(function)
    instructions = (op for op in operations(function) if isinstance(op, Instruction) and op.NEEDS_KERNEL)
    return has_loops(function) or any(kernel_of(op, backend).TIME_BY_VALUES for op in instructions)


def executed(scope: Scope) -> list[QualifiedOp]:
    """The operations that a function or block executes, in order: instructions, branches and loops."""
    return [op for op in own_operations(scope) if isinstance(op, QualifiedOp) and not isinstance(op, DeallocOp)]


def offset_in_region(attribute: object) -> int:
    """The offset of an allocated buffer, or the number of a binding; raises `CompilerBugError` if there is none."""
    if not isinstance(attribute, IntegerAttr):
        raise CompilerBugError("a buffer has no offset", hint="run the pass 'allocate' first")
    return attribute.value.data
