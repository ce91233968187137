"""
From allocated instructions to device functions in the `llvm` dialect, and to the launch programs that run them.

`glow-low-to-scf` makes host programs: an entry that calls functions. On a device, the host controls what runs. The
entry is therefore data (`runtime.launches`), and each distinct instruction, or each axis along which it is partitioned,
is one function that gets all it needs as arguments and runs one part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from functools import cached_property
from itertools import groupby

from xdsl.context import Context
from xdsl.ir import Attribute, SSAValue

from glow_mlir.backends.interface import Backend, backend_of
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import Param, define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.partition import Partition
from glow_mlir.codegen.builder.types import i64, index_type, ptr
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.glow_low_to_scf import check_entry, executed, failing, offset_in_region
from glow_mlir.codegen.instruction_functions import (
    kernel_of,
    operands_of,
    private_to,
    readable_name,
    scalar_words,
    signature,
    symbols_of,
    takes_scalars,
)
from glow_mlir.codegen.raise_alignments import RaiseAlignmentsPass
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall
from glow_mlir.codegen.selection.partitions import partitions_of
from glow_mlir.constants.index_ranges import failure_of
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_low.base import Instruction, QualifiedOp
from glow_mlir.dialects.glow_low.loop import LoopOp, WindowOp
from glow_mlir.dialects.glow_low.memory import AllocOp, FuncOp, WeightOp, offset_of, root_of
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.shapes import element_of
from glow_mlir.dialects.target import Target
from glow_mlir.errors import CompilerBugError, ModelError
from glow_mlir.ir.locations import location_name, source_location
from glow_mlir.ir.traversal import Scope
from glow_mlir.runtime.launches import (
    ACTIVATIONS,
    BINDINGS,
    CONSTANTS,
    SCALARS,
    STATUS,
    Address,
    Launch,
    LaunchProgram,
    Repeat,
)
from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Quotient

Frame = Callable[..., AbstractContextManager[tuple[Builder, list[Value], Value]]]
"""
Begins a device function: `(module, name, parameters, parts, threads, passes)`, as `by_number` does. Yields its builder,
its arguments, and the number of the part that it runs.
"""


@contextmanager
def by_number(
    module: ModuleBuilder, name: str, parameters: Sequence[Attribute | Param], parts: int, threads: int, passes: str
) -> Generator[tuple[Builder, list[Value], Value]]:
    """A function whose last argument, an i64, is the number of its part."""
    with define_function(module, name, [*parameters, i64], passes=passes) as (b, arguments):
        yield b, arguments[:-1], b.index(arguments[-1])


def emit_device_functions(
    functions: Sequence[FuncOp], module: ModuleBuilder, frame: Frame = by_number
) -> list[LaunchProgram]:
    """
    Emit the device functions of allocated functions into a module, and return the launch program of each.

    The functions are for the target of the module. Each device function is external, and takes the arguments that
    `Launch` describes; `frame` decides how it gets the number of its part. Pointers have the alignment that the offsets
    of all their operands share, at most `ALIGNED` bytes. Raises `ModelError` for anything that a launch program cannot
    express (`refused`).
    """
    for function in functions:
        check_entry(function)
    programs = [_DeviceEmission(function, module, backend_of(function), frame).program() for function in functions]
    RaiseAlignmentsPass().apply(Context(), module.module)
    return programs


ALIGNED = 16
"""The maximum number of bytes of one access: pointers promise no more alignment."""


def _alignment(address: Address) -> int:
    """The alignment of an address: a power of two, at most `ALIGNED`, to which regions are aligned."""
    found = ALIGNED
    for number in (address.offset, *address.strides):
        found = math.gcd(found, number)
    return found


def refused(op: QualifiedOp) -> str:
    """Why no launch program can run an instruction, branch or loop; empty if one can."""
    if isinstance(op, LoopOp):
        if op.trip_count is not None or op.condition is not None or not isinstance(op.size_of_trips, int):
            return "the number of its trips is known only on the device"
        return ""
    if not isinstance(op, Instruction) or not op.NEEDS_KERNEL:
        return "the control flow depends on values on the device"
    return ""


@dataclass
class _DeviceEmission:
    """Emission of the device functions of one function."""

    function: FuncOp
    module: ModuleBuilder
    backend: Backend
    frame: Frame
    scalars: list[int] = field(default_factory=list[int])
    """The words of the scalar parameters so far."""
    loops: list[SSAValue] = field(default_factory=list[SSAValue])
    """The indices of the enclosing loops, the outermost first."""

    @cached_property
    def statuses(self) -> dict[Instruction, int]:
        """Instruction that may fail → the index of its status."""
        return {op: number for number, op in enumerate(failing(self.function))}

    @property
    def target(self) -> Target:
        """The target device."""
        return self.module.target

    def program(self) -> LaunchProgram:
        """Emit the functions, and return the program."""
        steps = tuple(self._steps(self.function))
        return LaunchProgram(self.function.sym_name.data, steps, len(self.statuses), tuple(self.scalars))

    def _steps(self, scope: Scope) -> Iterator[Launch | Repeat]:
        """The launches of a function or of a loop's body."""
        for op in executed(scope):
            check_cancellation()
            if reason := refused(op):
                what = f"'{self.backend.name}' cannot run {op.name.partition('.')[2]}: {reason}"
                hint = "backend='cpu', for the model or for the part of it with this operation"
                raise ModelError(what, file=source_location(op), node=location_name(op.location), hint=hint)
            if isinstance(op, LoopOp):
                assert isinstance(op.size_of_trips, int)
                self.loops.append(op.index)
                yield Repeat(op.size_of_trips, tuple(self._steps(op.block)))
                self.loops.pop()
            else:
                assert isinstance(op, Instruction)
                yield from self._launches(op)

    def _launches(self, op: Instruction) -> Iterator[Launch | Repeat]:
        """
        The launches of all parts of an instruction: along one axis, then along the next, repeated for the kernel's
        rounds.
        """
        kernel, parts = kernel_of(op, self.backend), partitions_of(op)
        operands = tuple(self._operands(op))
        symbols = tuple(symbols_of(op))
        alignments = tuple(map(_alignment, operands))
        if not parts:
            threads = kernel.threads(op, "", self.target)
            name = self._function(kernel, op, "", 1, False, alignments)
            yield Launch(name, operands, 1, symbols, threads=threads)
            return
        if kernel.private(op) and not self.backend.PART_SCRATCH:
            raise CompilerBugError(f"parts of '{kernel.name}' share scratch", hint="Backend.PART_SCRATCH")
        axes = [axis for axis in kernel.AXES if axis in parts]
        for rounds, group in groupby(axes, lambda axis: kernel.rounds(op, axis, self.target)):
            takes_round = rounds != 1
            body = tuple(
                Launch(
                    self._function(kernel, op, axis, parts[axis], takes_round, alignments),
                    operands,
                    parts[axis],
                    symbols,
                    takes_round,
                    kernel.threads(op, axis, self.target),
                )
                for axis in group
            )
            if not takes_round:
                yield from body
            elif isinstance(rounds, int):
                yield Repeat(rounds, body)
            else:
                raise ModelError("the number of rounds depends on sizes that are known at run time", hint="fix sizes")

    def _function(
        self, kernel: Kernel, op: Instruction, axis: str, parts: int, takes_round: bool, alignments: Sequence[int]
    ) -> str:
        """The name of the function of one part of an instruction along an axis, or of the whole instruction."""
        may_fail, with_scalars = bool(failure_of(op)), takes_scalars(op)

        def build(name: str) -> None:
            names, count = symbols_of(op), len(list(op.named_uses()))
            parameters: list[Attribute | Param] = [Param(ptr, align=alignment) for alignment in alignments]
            parameters += [*[index_type] * len(names), *[i64] * takes_round]
            threads = kernel.threads(op, axis, self.target)
            framed = self.frame(self.module, name, parameters, parts, threads, kernel.passes)
            with framed as (b, arguments, part):
                pointers = arguments[:count]
                behind = count + may_fail + with_scalars
                failed = arguments[count] if may_fail else None
                b.scalars = arguments[count + may_fail] if with_scalars else None
                symbols = dict(zip(names, arguments[behind : behind + len(names)], strict=True))
                quotients: dict[Quotient, Index] = {}
                operands = operands_of(op, pointers, symbols, quotients)
                if axis:
                    private_to(part, kernel, op, operands)
                number = b.index(arguments[-1]) if takes_round else None
                share = Partition(part, parts) if axis else Partition()
                kernel.emit(KernelCall(b, self.module, op, operands, axis, share, number, symbols, failed, quotients))

        readable = f"{readable_name(kernel, op)}.{axis}" if axis else readable_name(kernel, op)
        return self.module.shared((axis, alignments, signature(kernel, op)), build, self.module.free_name(readable))

    def _operands(self, op: Instruction) -> Iterator[Address]:
        """The addresses of an instruction's operands, of its status, and of its scalar parameters."""
        for _, _, value in op.named_uses():
            yield self._address(value)
        if failure_of(op):
            yield Address(STATUS, 4 * self.statuses[op])
        if takes_scalars(op):
            yield Address(SCALARS, 4 * len(self.scalars))
            self.scalars += scalar_words(op)

    def _address(self, value: SSAValue) -> Address:
        """The address of a buffer's first element."""
        root, offset = root_of(value).owner, offset_of(value) * byte_width(element_of(value))
        strides = self._strides(value)
        if isinstance(root, AllocOp):
            return Address(ACTIVATIONS, offset_in_region(root.offset) + offset, strides=strides)
        assert isinstance(root, WeightOp)
        assert root.region is not None
        begin = offset_in_region(root.offset)
        if root.region.data == CONSTANTS:
            return Address(CONSTANTS, begin + offset, strides=strides)
        return Address(BINDINGS, offset, begin, strides)

    def _strides(self, value: SSAValue) -> tuple[int, ...]:
        """The bytes by which each trip of the enclosing loops moves the beginning of a buffer."""
        if not isinstance(value.owner, WindowOp):
            return ()
        size = byte_width(element_of(value))
        moves = list(zip(value.owner.indices, ints(value.owner.steps), strict=True))
        return tuple(sum(step for index, step in moves if index is loop) * size for loop in self.loops)
