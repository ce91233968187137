"""`check-races`: finds threads of emulated blocks that access the same shared memory without a barrier in between."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.llvm import (
    GEP_USE_SSA_VAL,
    AllocaOp,
    CallIntrinsicOp,
    FuncOp,
    GlobalOp,
    LLVMArrayType,
    LLVMStructType,
)
from xdsl.dialects.scf import ForOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import TRIPLE, ModuleBuilder
from glow_mlir.codegen.builder.types import array, i64, ptr, type_info
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.dialects.llvm_ops.memory import GEPOp, LoadOp, StoreOp
from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.dialects.target import Target
from glow_mlir.errors import ModelError
from glow_mlir.ir.locations import source_location
from glow_mlir.ir.traversal import all_operations, own_operations
from glow_mlir.support.dataclass import dataclass

BLOCKS, THREADS = "glow.blocks", "glow.threads"
"""Attributes of loops over blocks, and of loops over the threads of a block between two barriers."""

SHARED = "glow.shared"
"""The attribute of a buffer that the threads of a block share: the bytes of a unit; accesses are multiples of it."""

BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"
"""The intrinsic that lets threads wait for each other."""

RACE = "race"
"""The global that records whether there was a race, at which byte of shared memory, and between which threads."""

RACE_WORDS = 4

THREAD_BITS = 12
"""
A tag is the number of a phase, with the number of a thread plus one in this many low bits; all ones for several
threads.
"""

SEVERAL = (1 << THREAD_BITS) - 1


@dataclass(frozen=True)
class CheckRacesPass(ModulePass):
    """
    Make structured functions that emulate blocks of threads record races in the global `race`, whose address the
    function `races` returns.

    A race is two threads that access one unit of a buffer with `glow.shared` without a barrier in between, if one of
    them writes. Each access of such a buffer calls a function that keeps the accessing threads as tags of each unit;
    barriers, and the next block, begin a new phase. Barriers are removed: the loops with `glow.threads` around accesses
    give the thread.
    """

    name = "check-races"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [
            inner for inner in own_operations(op.body.block) if isinstance(inner, FuncOp) and inner.body.blocks
        ]
        added = ModuleBuilder(_target_of(op, functions))
        _add_race(added)
        for function in functions:
            _Checking(function, added).run()
        for new in list(own_operations(added.module.body.block)):
            new.detach()
            op.body.block.add_op(new)


def _target_of(module: ModuleOp, functions: Sequence[FuncOp]) -> Target:
    """The machine of the functions, as far as it is given."""
    cpu = next((function.properties.get("target_cpu") for function in functions), None)
    return Target(DEFAULT_BACKEND, triple=_text(module.attributes.get(TRIPLE)), cpu=_text(cpu))


def _text(attribute: Attribute | None) -> str:
    return attribute.data if isinstance(attribute, StringAttr) else ""


def _add_race(module: ModuleBuilder) -> None:
    """Add the record of a race, and the function that returns its address."""
    zeros: TensorType[Any] = TensorType(i64, [RACE_WORDS])
    content = DenseIntOrFPElementsAttr.from_list(zeros, [0] * RACE_WORDS)
    module.module.body.block.add_op(GlobalOp(array(i64, RACE_WORDS), RACE, "internal", value=content, alignment=8))
    with define_function(module, "races", [], result=ptr) as (b, _):
        b.give_back(b.symbol(RACE))


@dataclass
class _Access:
    """A load or store of shared memory, with the address computations from the beginning of the buffer."""

    op: Operation
    steps: tuple[GEPOp, ...]

    @property
    def writes(self) -> bool:
        """Whether it is a store."""
        return isinstance(self.op, StoreOp)

    @property
    def nbytes(self) -> int:
        """The number of bytes that it reads or writes."""
        info = type_info((self.op.operands[0] if self.writes else self.op.results[0]).type)
        return info.lanes * info.bytes_in_memory

    def offset(self, b: Builder) -> Index:
        """The offset from the beginning of the buffer, in bytes."""
        total: Index = 0
        for step in self.steps:
            number, *others = step.rawConstantIndices.get_values()
            if others or isinstance(step.elem_type, LLVMArrayType | LLVMStructType):
                raise _refusal(step, "an address in shared memory needs a single index, in scalars or vectors")
            info = type_info(step.elem_type)
            size = info.lanes * info.bytes_in_memory
            index = b.index(Value(b, step.operands[1])) * size if number == GEP_USE_SSA_VAL else number * size
            total = index + total
        return total


class _Checking:
    """Insertion of checks into one function."""

    def __init__(self, function: FuncOp, module: ModuleBuilder) -> None:
        self._ops = all_operations(function.body.block)
        self._b = Builder(module, function.body.block)

    def run(self) -> None:
        """Check all accesses of shared memory, and remove barriers."""
        buffers = [op for op in self._ops if isinstance(op, AllocaOp) and SHARED in op.attributes]
        phases = self._first_phase() if buffers else None
        for buffer in buffers:
            self._check_all(buffer, _unit(buffer), phases)
        for op in self._ops:
            if isinstance(op, ForOp) and BLOCKS in op.attributes and phases is not None:
                first = op.body.block.first_op
                assert first is not None
                self._next_phase(phases, first)
            elif isinstance(op, CallIntrinsicOp) and op.intrin.data == BARRIER:
                if phases is not None:
                    self._next_phase(phases, op)
                op.detach()
                op.erase()
        self._b.finish()

    def _first_phase(self) -> Value:
        """The address of the number of the phase, which is 1 at first: a tag of 0 belongs to no phase."""
        b = self._b
        phases = b.stack(i64, 1)
        with b.into(b.at_top):
            phases.store(b.constant(1, i64))
        return phases

    def _next_phase(self, phases: Value, op: Operation) -> None:
        """Begin a new phase before an operation."""
        with self._before(op):
            phases.store(phases.load(i64) + 1)

    @contextmanager
    def _before(self, op: Operation) -> Generator[None]:
        """Emit before an operation."""
        inside, block = Block(), op.parent_block()
        assert block is not None
        with self._b.into(inside):
            yield
        for new in list(own_operations(inside)):
            new.detach()
            block.insert_op_before(new, op)

    def _check_all(self, buffer: AllocaOp, unit: int, phases: Value | None) -> None:
        """Call a check before each access of a buffer."""
        assert phases is not None
        b, tags_of_none = self._b, 2 * -(-_nbytes(buffer) // unit)
        tags = b.stack(i64, tags_of_none)
        with b.into(b.at_top), b.loop(0, tags_of_none) as number:
            tags.at(number, i64).store(b.constant(0, i64))
        for access in _accesses(buffer.results[0], ()):
            thread = _thread_of(access.op)
            with self._before(access.op):
                self._check(access, unit, tags, phases.load(i64), Value(b, thread))

    def _check(self, access: _Access, unit: int, tags: Value, phase: Value, thread: Value) -> None:
        b, writes = self._b, access.writes
        name = b.module.shared(("race", writes), lambda name: _define(b.module, name, writes), "check_race")
        first = access.offset(b) // unit
        b.call(name, [tags, first, max(1, access.nbytes // unit), phase, b.cast(thread, i64), unit])


def _unit(buffer: AllocaOp) -> int:
    """The bytes of a unit of a buffer; the attribute is removed."""
    unit = buffer.attributes.pop(SHARED)
    if not isinstance(unit, IntegerAttr) or unit.value.data < 1:
        raise _refusal(buffer, f"{SHARED} has to be a positive number of bytes")
    return unit.value.data


def _nbytes(buffer: AllocaOp) -> int:
    """The size of a buffer in bytes, which has to be constant."""
    count, element, total = buffer.operands[0].owner, buffer.elem_type, 1
    number = count.properties.get("value") if isinstance(count, Operation) else None
    if not isinstance(number, IntegerAttr) or number.value.data < 1:
        raise _refusal(buffer, "the size of shared memory has to be constant")
    if isinstance(element, LLVMArrayType):
        element, total = element.type, element.size.data
    info = type_info(element)
    return number.value.data * total * info.lanes * info.bytes_in_memory


def _refusal(op: Operation, reason: str) -> ModelError:
    return ModelError(reason, file=source_location(op), hint="docs/ir.md describes the input of 'check-races'")


def _accesses(pointer: SSAValue, steps: tuple[GEPOp, ...]) -> Generator[_Access]:
    """The loads and stores at a pointer, and at pointers computed from it; raises `ModelError` for other uses."""
    for use in list(pointer.uses):
        op = use.operation
        if isinstance(op, GEPOp):
            yield from _accesses(op.results[0], (*steps, op))
        elif isinstance(op, LoadOp) or (isinstance(op, StoreOp) and use.index == 1):
            yield _Access(op, steps)
        else:
            raise _refusal(op, f"a pointer to shared memory is for loads, stores and addresses, not for {op.name}")


def _thread_of(op: Operation) -> SSAValue:
    """The number of the thread that runs an operation; raises `ModelError` if no loop gives it."""
    around = op.parent_op()
    while around is not None:
        if isinstance(around, ForOp) and THREADS in around.attributes:
            return around.body.block.args[0]
        around = around.parent_op()
    raise _refusal(op, f"shared memory is accessed only in loops with {THREADS}")


def _define(module: ModuleBuilder, name: str, writes: bool) -> None:
    """Define the function that checks an access of some units, and records it."""
    parameters = [ptr, i64, i64, i64, i64, i64]
    names = ("tags", "first", "count", "phase", "thread", "unit")
    with define_function(module, name, parameters, internal=True, inline=False, names=names) as (c, given):
        tags, first, count, phase, thread, unit = given
        own = (phase << THREAD_BITS) + (thread + 1)
        begin = phase << THREAD_BITS
        with c.loop(0, c.index(count)) as step:
            number = c.index(first) + step
            writer, reader = tags.at(number * 2, i64), tags.at(number * 2 + 1, i64)
            wrote, read = writer.load(i64), reader.load(i64)
            others = [wrote, read] if writes else [wrote]
            for other in others:
                with c.when((other > begin) & other.ne(own)):
                    _note(c, number * c.index(unit), own - begin, other - begin)
            if writes:
                writer.store(own)
            else:
                alone = (read <= begin) | read.eq(own)
                reader.store(c.select(alone, own, begin + SEVERAL))


def _note(b: Builder, offset: Value, first: Value, other: Value) -> None:
    """Record a race, if it is the first."""
    race = b.symbol(RACE)
    with b.when(race.load(i64).eq(0)):
        for word, value in enumerate((b.constant(1, i64), b.cast(offset, i64), first - 1, other - 1)):
            race.at(word, i64).store(value)
