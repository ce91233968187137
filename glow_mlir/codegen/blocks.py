"""
Blocks of threads: operations of a device's threads together, with shared memory, barriers and matrix instructions.

    block = Block.of(b, threads=128)
    tile = block.shared(4096, unit=4)
    with block.each_thread() as thread:
        tile.store(thread, thread * 4, value)
    block.barrier()

The same code has two meanings. On the device, every thread runs it, and a barrier is a barrier. On a processor that
emulates the device, `each_thread` is a loop over the threads between barriers, private memory is an array, and the pass
`check-races` removes the barriers and checks each access to shared memory.

Code outside of `each_thread` is therefore the same for all threads, including loops that contain barriers. A value of
a thread is passed on only in `private` memory, which becomes registers if its indices are constants.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.dialects.builtin import i64 as index_of_field
from xdsl.dialects.llvm import ExtractValueOp, GlobalOp, LLVMStructType
from xdsl.ir import Attribute, Operation

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import array, i8, i32, i64, pointer_in, type_info, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.check_races import BARRIER, THREADS
from glow_mlir.codegen.check_races import SHARED as SHARED_BUFFER
from glow_mlir.codegen.matrix_instructions import WARP, MatrixInstruction, multiply_add
from glow_mlir.dialects.llvm_ops.values import AddrSpaceCastOp
from glow_mlir.support.dataclass import dataclass

GLOBAL, SHARED = 1, 3
"""Address spaces of NVPTX: memory of the device, and memory of a block."""

ALIGNED = 16
"""The alignment of shared and private memory, in bytes."""


class Private(ABC):
    """Elements that each thread has for itself."""

    def __init__(self, b: Builder, element: Attribute, count: int) -> None:
        self.b, self.element, self.count = b, element, count

    @abstractmethod
    def address(self, thread: Value, number: Index = 0) -> Value:
        """The address of an element."""

    def load(self, thread: Value, number: Index = 0) -> Value:
        """Load an element."""
        return self.address(thread, number).load(self.element)

    def store(self, thread: Value, value: Value | float, number: Index = 0) -> None:
        """Store an element."""
        self.b.store(value, self.address(thread, number), type_=self.element)

    def fill(self, thread: Value, value: float) -> None:
        """Store a value to all elements."""
        for number in range(self.count):
            self.store(thread, value, number)


class Shared(ABC):
    """Memory that all threads of a block share; offsets are in bytes, as i32."""

    @abstractmethod
    def load(self, thread: Value, offset: Index, type_: Attribute) -> Value:
        """Load a scalar, or a vector whose offset is a multiple of its size."""

    @abstractmethod
    def store(self, thread: Value, offset: Index, value: Value) -> None:
        """Store a scalar, or a vector whose offset is a multiple of its size."""


class Block(ABC):
    """The threads of a block, a multiple of a warp."""

    def __init__(self, b: Builder, threads: int) -> None:
        self.b, self.threads = b, threads

    @staticmethod
    def of(b: Builder, threads: int) -> Block:
        """The block for the function under construction."""
        return DeviceBlock(b, threads) if b.module.emulated_by is None else EmulatedBlock(b, threads)

    @abstractmethod
    def each_thread(self) -> AbstractContextManager[Value]:
        """A context for code that every thread runs. Yields the number of the thread, an i32."""

    def barrier(self) -> None:
        """Wait for all threads; then all of them see the values that any has written to shared memory."""
        self.b.perform_intrinsic(BARRIER, [self.b.constant(0, i32)])

    @abstractmethod
    def shared(self, nbytes: int, unit: int) -> Shared:
        """Allocate shared memory, whose accesses are multiples of `unit` bytes."""

    @abstractmethod
    def private(self, element: Attribute, count: int) -> Private:
        """Allocate memory of each thread."""

    @abstractmethod
    def copy(self, thread: Value, target: tuple[Shared, Index], source: Value, exists: Value) -> None:
        """
        Start to copy 16 bytes from global to shared memory, or zeros if the source does not exist.

        They are visible after `wait_for_copies` and a barrier.
        """

    @abstractmethod
    def wait_for_copies(self) -> None:
        """Wait for the copies that a thread has started."""

    @abstractmethod
    def exchange(self, source: Private, target: Private, distance: int) -> None:
        """
        Give each thread the first element of `source` of the thread whose number in the warp differs in the bit
        `distance`.
        """

    @abstractmethod
    def multiply_add(
        self,
        instruction: MatrixInstruction,
        accumulators: tuple[Private, int],
        left: tuple[Private, int],
        right: tuple[Private, int],
    ) -> None:
        """In each warp, add a product of matrices; each fragment begins at an element of private memory."""


class DevicePrivate(Private):
    """Memory of the thread that runs the code."""

    def __init__(self, b: Builder, element: Attribute, count: int) -> None:
        super().__init__(b, element, count)
        self._memory = b.stack(element, count, ALIGNED)

    def address(self, thread: Value, number: Index = 0) -> Value:
        return self._memory.at(number, self.element)


@dataclass(frozen=True)
class DeviceShared(Shared):
    """A variable of the module in the space of shared memory."""

    base: Value

    def at(self, offset: Index) -> Value:
        """The address of a byte."""
        return self.base.at(offset, i8)

    def load(self, thread: Value, offset: Index, type_: Attribute) -> Value:
        return self.at(offset).load(type_, align=_size(type_))

    def store(self, thread: Value, offset: Index, value: Value) -> None:
        self.at(offset).store(value, align=_size(value.type))


class DeviceBlock(Block):
    """Threads of a device, each of which runs the code."""

    def __init__(self, b: Builder, threads: int) -> None:
        super().__init__(b, threads)
        self._thread = b.once("tid", lambda: b.intrinsic("llvm.nvvm.read.ptx.sreg.tid.x", [], i32))
        self._variables = 0

    @contextmanager
    def each_thread(self) -> Generator[Value]:
        yield self._thread

    def shared(self, nbytes: int, unit: int) -> DeviceShared:
        b = self.b
        self._variables += 1
        name = f"shared_{len(b.module.signatures)}_{self._variables}"
        variable = GlobalOp(array(i8, nbytes), name, "internal", alignment=ALIGNED, addr_space=SHARED)
        b.module.module.body.block.add_op(variable)
        return DeviceShared(b.symbol(name, SHARED))

    def private(self, element: Attribute, count: int) -> DevicePrivate:
        return DevicePrivate(self.b, element, count)

    def copy(self, thread: Value, target: tuple[Shared, Index], source: Value, exists: Value) -> None:
        b, (shared, offset) = self.b, target
        assert isinstance(shared, DeviceShared)
        known = b.emit(AddrSpaceCastOp, (source,), pointer_in(GLOBAL))
        size = b.select(exists, b.constant(ALIGNED, i32), 0)
        b.perform_intrinsic("llvm.nvvm.cp.async.cg.shared.global.16.s", [shared.at(offset), known, size])

    def wait_for_copies(self) -> None:
        self.b.perform_intrinsic("llvm.nvvm.cp.async.wait.all", [])

    def exchange(self, source: Private, target: Private, distance: int) -> None:
        b, kind = self.b, "f32" if type_info(source.element).is_float else "i32"
        with self.each_thread() as thread:
            numbers = [b.constant(number, i32) for number in (distance, WARP - 1)]
            operands = [b.constant(-1, i32), source.load(thread), *numbers]
            target.store(thread, b.intrinsic(f"llvm.nvvm.shfl.sync.bfly.{kind}", operands, source.element))

    def multiply_add(
        self,
        instruction: MatrixInstruction,
        accumulators: tuple[Private, int],
        left: tuple[Private, int],
        right: tuple[Private, int],
    ) -> None:
        b = self.b
        counts = (instruction.left_words, instruction.right_words, instruction.accumulators)
        with self.each_thread() as thread:
            operands = [
                memory.load(thread, first + number)
                for (memory, first), count in zip((left, right, accumulators), counts, strict=True)
                for number in range(count)
            ]
            if instruction.takes_pairs:
                words = instruction.left_words + instruction.right_words
                operands[:words] = [b.bitcast(word, instruction.left) for word in operands[:words]]
            struct = LLVMStructType.from_type_list([accumulators[0].element] * instruction.accumulators)
            found = b.intrinsic(instruction.name, operands, struct)
            for number in range(instruction.accumulators):
                properties = {"position": DenseArrayBase.from_list(index_of_field, [number])}
                part = b.emit(ExtractValueOp, (found,), accumulators[0].element, properties)
                accumulators[0].store(thread, part, accumulators[1] + number)


class EmulatedPrivate(Private):
    """An array with the elements of all threads."""

    def __init__(self, b: Builder, element: Attribute, count: int, threads: int) -> None:
        super().__init__(b, element, count)
        self.memory = b.stack(element, count * threads, ALIGNED)

    def address(self, thread: Value, number: Index = 0) -> Value:
        return self.memory.at(thread * self.count + number, self.element)


@dataclass(frozen=True)
class EmulatedShared(Shared):
    """A buffer of the emulation, whose accesses `check-races` checks."""

    memory: Value

    def load(self, thread: Value, offset: Index, type_: Attribute) -> Value:
        return self.memory.at(offset, i8).load(type_, align=_size(type_))

    def store(self, thread: Value, offset: Index, value: Value) -> None:
        self.memory.at(offset, i8).store(value, align=_size(value.type))


class EmulatedBlock(Block):
    """Threads that run one after the other, from barrier to barrier."""

    @contextmanager
    def each_thread(self) -> Generator[Value]:
        with self.b.loop(0, self.threads, role=THREADS) as thread:
            yield self.b.cast(thread, i32)

    def shared(self, nbytes: int, unit: int) -> EmulatedShared:
        memory = self.b.stack(i8, nbytes, ALIGNED)
        assert isinstance(memory.ssa.owner, Operation)
        memory.ssa.owner.attributes[SHARED_BUFFER] = IntegerAttr(unit, i64)
        return EmulatedShared(memory)

    def private(self, element: Attribute, count: int) -> EmulatedPrivate:
        return EmulatedPrivate(self.b, element, count, self.threads)

    def copy(self, thread: Value, target: tuple[Shared, Index], source: Value, exists: Value) -> None:
        b, (shared, offset) = self.b, target
        words = vector(i32, ALIGNED // 4)

        def read() -> Sequence[Value]:
            return [source.load(words, align=1)]

        (value,) = b.either(exists, read, lambda: [b.constant(0, words)])
        shared.store(thread, offset, value)

    def wait_for_copies(self) -> None:
        """Do nothing: copies are done as soon as they start."""

    def exchange(self, source: Private, target: Private, distance: int) -> None:
        with self.each_thread() as thread:
            target.store(thread, source.load(thread ^ distance))

    def multiply_add(
        self,
        instruction: MatrixInstruction,
        accumulators: tuple[Private, int],
        left: tuple[Private, int],
        right: tuple[Private, int],
    ) -> None:
        with self.b.loop(0, self.threads, WARP) as first:
            warp = self.b.cast(first, i32)
            fragments = [(memory.address(warp, number), memory.count) for memory, number in (accumulators, left, right)]
            multiply_add(self.b, instruction, *fragments)


def _size(type_: Attribute) -> int:
    """Bytes of a number or vector."""
    info = type_info(type_)
    return info.lanes * info.bytes_in_memory
