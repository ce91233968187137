"""The interface of kernels: the instructions that they execute, their preparation, and the emission of `llvm` ops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cached_property
from types import UnionType
from typing import Any, ClassVar, Generic, get_args, get_origin

from typing_extensions import TypeVar, get_original_bases
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.nests import Extents, Index
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.types import i1, i32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import operand_groups
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import (
    AllocOp,
    DeallocOp,
    buffer_type,
    strides_of,
)
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import Shape, element_of, shape_of, sizes_of
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Factor, Quotient, Size, Sizes, Symbol, SymbolicSize

OpT = TypeVar("OpT", bound=Operation, default=Any)
"""
The operators that a kernel executes. Its methods get one of them, or an instruction of one, which has the same
operands, properties and methods.
"""

OpT_co = TypeVar("OpT_co", bound=Operation, default=Any, covariant=True)


@dataclass(frozen=True)
class Operand:
    """
    One operand inside a kernel: the address of its first element, and its static type.

    The first axis of @scratch that each worker has for itself counts the workers, and is `hidden`.
    """

    pointer: Value
    value: SSAValue
    hidden: int = 0
    symbols: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """The values of the symbols in its sizes, by name."""
    quotients: dict[Quotient, Index] = field(default_factory=dict[Quotient, Index])
    """The quotients in sizes that have been computed where its extents are, or before that; its own are added."""

    @property
    def shape(self) -> Shape:
        """Sizes of the axes; raises `RunTimeSizeError` if one is known only at run time."""
        return shape_of(self.value)[self.hidden :]

    @property
    def sizes(self) -> Sizes:
        """Sizes of the axes: numbers, or symbolic sizes."""
        return sizes_of(self.value)[self.hidden :]

    @cached_property
    def extents(self) -> Extents:
        """Sizes of the axes: Python numbers, or values of the function for symbolic sizes."""
        return extents_at(self.sizes, self.symbols, self.quotients)

    @property
    def strides(self) -> Shape:
        """Strides of the axes, in elements."""
        return strides_of(self.value)[self.hidden :]

    def of_worker(self, worker: Value) -> Operand:
        """The scratch of one worker."""
        pointer = self.pointer.at(worker * strides_of(self.value)[0], self.element)
        return Operand(pointer, self.value, 1, self.symbols, self.quotients)

    @property
    def element(self) -> Attribute:
        """The element type, with signedness."""
        return element_of(self.value)


def extents_at(sizes: Sizes, symbols: Mapping[str, Value], quotients: dict[Quotient, Index] | None = None) -> Extents:
    """
    Sizes as Python numbers where they are known, else as values, for these values of symbols.

    Each quotient is computed once: `quotients` has those that have been computed, and gets the others.
    """
    known = {} if quotients is None else quotients
    return tuple(size if isinstance(size, int) else _extent(size, symbols, known) for size in sizes)


def _extent(size: SymbolicSize, symbols: Mapping[str, Value], quotients: dict[Quotient, Index]) -> Index:
    total: Index = size.offset
    for product, times in size.terms:
        term: Index = times
        for factor in product:
            term = _factor(factor, symbols, quotients) * term
        total = term + total
    return total


def _factor(factor: Factor, symbols: Mapping[str, Value], quotients: dict[Quotient, Index]) -> Index:
    """A factor of a size; neither it nor the dividend of a quotient is negative."""
    if isinstance(factor, Symbol):
        return symbols[factor.name]
    if factor not in quotients:
        quotients[factor] = _extent(factor.dividend, symbols, quotients) // factor.divisor
    return quotients[factor]


@dataclass(frozen=True)
class KernelCall(Generic[OpT_co]):
    """
    The inputs with which a kernel emits one function: a builder, the instruction, and its operands by name.

    If the instruction is partitioned, the function runs one part, that of `cut` along `axis`, in one of the kernel's
    rounds.
    """

    b: Builder
    module: ModuleBuilder
    op: OpT_co
    operands: Mapping[str, Sequence[Operand]]
    axis: str = ""
    cut: Partition = ALL
    round: Value | None = None
    """The number of the round; `None` if the function runs all of them."""
    symbols: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """The values of the symbols in the sizes of its operands, by name."""
    failed: Value | None = None
    """The address of the failure flag; `None` if the instruction never fails (`HighOp.FAILURE`)."""
    quotients: Mapping[Quotient, Index] = field(default_factory=dict[Quotient, Index])
    """The quotients in sizes of its operands, computed before all branches."""
    cancelled: Value | None = None
    """The address of the cancellation flag; `None` if the call cannot be cancelled, or the kernel does not check."""

    def is_cancelled(self) -> Value:
        """Whether the call has been cancelled, as an i1; the results of the instruction are then meaningless."""
        if self.cancelled is None:
            return self.b.constant(0, i1)
        return self.b.atomic_load(self.cancelled, i32, "monotonic").ne(0)

    @contextmanager
    def unless_cancelled(self) -> Generator[None]:
        """Run the block unless the call has been cancelled."""
        if self.cancelled is None:
            yield
            return
        with self.b.when(~self.is_cancelled()):
            yield

    def share(self, axis: str) -> Partition:
        """
        The slice of the steps along an axis that the function runs: all, unless it is partitioned along that axis.
        """
        return self.cut if axis == self.axis else ALL

    def runs(self, *axes: str) -> bool:
        """Whether the function contains the code that is partitioned along one of these axes."""
        return not self.axis or self.axis in axes

    def extents(self, sizes: Sizes) -> Extents:
        """Sizes as Python numbers where they are known, and as values of the function otherwise."""
        return extents_at(sizes, self.symbols, dict(self.quotients))

    def fail(self) -> None:
        """Make the instruction fail if this code is reached. It continues, and accesses nothing but its operands."""
        assert self.failed is not None
        self.failed.store(self.b.constant(1, i32))

    @property
    def target(self) -> Target:
        """The target machine."""
        return self.module.target

    def one(self, name: str) -> Operand:
        """The operand of that name."""
        return self.operands[name][0]

    def maybe(self, name: str) -> Operand | None:
        """The optional operand of that name, or `None`."""
        found = self.operands.get(name, ())
        return found[0] if found else None

    def many(self, name: str) -> Sequence[Operand]:
        """The variadic operand of that name."""
        return self.operands.get(name, ())

    @property
    def result(self) -> Operand:
        """The operand `result`."""
        return self.one("result")


Tiles = Mapping[str, int]
"""
The choices of a kernel for an instruction, as names and numbers: sizes of tiles and blocks, 1 and 0 for yes and no.
"""

Buffer = tuple[Shape, Attribute]
"""Shape and element type of a buffer."""


@dataclass(frozen=True)
class Choice:
    """The possible values of one of the tiles, and whether the kernel needs it."""

    values: Sequence[int]
    needed: bool = False


UNBOUNDED = 1 << 62
"""The upper bound of a tile whose size is not limited."""

YES_OR_NO = range(2)
"""The values of a tile that stands for a decision."""


class Kernel(ABC, Generic[OpT]):
    """
    Executes the instructions of some operators, which are its type argument, as in `Kernel[A | B]`.

    A kernel emits one function for each distinct instruction (types, properties and body); its arguments are the
    addresses of the operands. Heavy inner loops belong in functions shared by `ModuleBuilder.shared`.
    """

    name: ClassVar[str]
    NAMED_BY_INSTRUCTION: ClassVar[bool] = False
    """Whether functions are named after their instruction: for a kernel of so many that its own name says little."""
    passes: ClassVar[str] = ""
    """LLVM IR passes for the function, a key of `codegen.llvm.objects.PASS_LISTS`."""
    EPILOGUE: ClassVar[bool] = False
    """Whether the kernel applies epilogues whose extra operands have contiguous columns, or one element for all."""
    STRIDED_INNER: ClassVar[bool] = False
    """Whether the kernel is equally fast if elements along the innermost axis of an operand are not contiguous."""
    PROLOGUE: ClassVar[bool] = False
    """Whether the kernel applies prologues like that, once to each element."""

    AXES: ClassVar[tuple[str, ...]] = ()
    """
    Names of the axes along which instructions are partitioned, in the order in which their code runs. Either all code
    of an instruction is partitioned along one axis, or consecutive phases are, along one axis each.
    """

    ROW_TILING: ClassVar[bool] = False
    """
    Whether the kernel computes some lines of an image as it would among all lines: equally fast and, with
    `image_lines`, with the same bits.
    """

    SUMMING: ClassVar[tuple[str, ...]] = ()
    """
    Names of the tiles that determine the order of sums, and so the last digits of results. The `candidates` for any
    number of threads have the same values of these.
    """

    LEAN: ClassVar[bool] = True
    """Whether scratch and packed operands take about as much memory as the operands themselves."""

    STRICT: ClassVar[bool] = True
    """Whether the error of sums stays within the bound of docs/floating-point.md for plain sums."""

    RUN_TIME_SIZES: ClassVar[bool] = False
    """Whether the kernel takes sizes that are known only at run time, wherever `accepts` needs no number."""

    TIME_BY_VALUES: ClassVar[bool] = False
    """
    Whether the time that the kernel takes depends on values: it then checks for cancellation before it is done
    (`KernelCall.unless_cancelled`).
    """

    READS_ZERO_POINTS: ClassVar[bool] = False
    """Whether code depends on the zero points of quantized operands, not only on their storage type."""

    ONLY_PACKED: ClassVar[bool] = False
    """Whether the kernel executes an instruction only when its operands are packed."""

    operators: ClassVar[tuple[type[Operation], ...]] = ()
    """The operators of the kernel, or bases of them: its type argument."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in get_original_bases(cls):
            origin = get_origin(base)
            if isinstance(origin, type) and issubclass(origin, Kernel):
                (argument,) = get_args(base)
                kinds = get_args(argument) if isinstance(argument, UnionType) else (argument,)
                if all(isinstance(kind, type) for kind in kinds):
                    cls.operators = kinds

    def is_for(self, op: Operation) -> bool:
        """Whether `op` is one of the operators of the kernel, or an instruction of one."""
        return issubclass(kind_of(op), self.operators)

    def accepts(self, op: OpT) -> bool:
        """
        Whether the kernel executes `op`, one of its operators or an instruction of one; by default, it does.

        Operators are checked before lowering, so that those which no kernel accepts are lowered. The answer depends
        only on types, properties and bodies, and on which operands are constants or the same value: it is cached for
        operations of the same form (`selection.form`).
        """
        return True

    def takes_strided_inner(self, op: OpT, target: Target) -> bool:
        """Whether an instruction is no slower if elements along the innermost axis of an operand are not contiguous."""
        return self.STRIDED_INNER

    def suits(self, op: OpT, target: Target) -> bool:
        """
        Whether the sizes of an instruction that the kernel accepts suit a target; by default, all do.

        If they do not, the kernel has no candidates for it.
        """
        return True

    def candidates(self, op: OpT, storage: Storage, target: Target) -> Sequence[Tiles]:
        """
        The tiles with which the kernel executes an instruction that it accepts, the best guess of its cost model first.

        Empty tiles mean that there is nothing to choose. The sequence is empty if the sizes do not suit the target, or
        if operands would have to be constants.
        """
        return ({},)

    def is_profitable(self, op: OpT, storage: Storage, target: Target) -> bool:
        """
        Whether to select the kernel for an instruction for which it has candidates, if nothing is measured; otherwise,
        kernels after it are considered.
        """
        return True

    def choices(self, op: OpT, target: Target) -> Mapping[str, Choice]:
        """The possible values of the tiles of a selected instruction, by name; its `candidates` are among them."""
        return {}

    def packed(self, op: OpT, target: Target) -> Mapping[str, PackedForm]:
        """
        The operands to pack if they are constants or state, of an instruction with this kernel and its tiles: all or
        none.

        The result is the same before and after packing; it is empty if the sizes do not suit the target.
        """
        return {}

    def scratch(self, op: OpT, target: Target) -> Sequence[Buffer]:
        """The @scratch operands that a prepared instruction needs; for `private` ones, those of one worker."""
        return ()

    def cuts(self, op: OpT, target: Target) -> Mapping[str, int]:
        """
        The axes along which to partition a prepared instruction, one for each phase, and the number of steps of each.

        Empty if it cannot be partitioned. Neither the inputs of an element of the result, nor their order, may depend
        on the partition.
        """
        return {}

    def rounds(self, op: OpT, axis: str, target: Target) -> Size:
        """
        How often all parts along an axis run, one time after the other.

        Neighbouring axes with the same number of rounds, if it is symbolic or more than one, take turns in each round.
        """
        return 1

    def threads(self, op: OpT, axis: str, target: Target) -> int:
        """
        The number of device threads that run a part along an axis together, with barriers (`codegen.blocks`); 1 for
        code of one thread.
        """
        return 1

    def private(self, op: OpT) -> Sequence[int]:
        """Numbers of the @scratch operands that each worker has for itself."""
        return ()

    @abstractmethod
    def emit(self, call: KernelCall[OpT]) -> None:
        """Emit the function's body."""


def tiles_of(op: Operation) -> Tiles:
    """The tiles that were chosen for an instruction; empty if there was nothing to choose."""
    tiles = op.properties.get("tiles")
    return {name: integer(size) for name, size in tiles.data.items()} if isinstance(tiles, DictionaryAttr) else {}


def kind_of(op: OpT) -> type[OpT]:
    """The operator class of an operator or of its instruction; the class itself for other instructions."""
    return getattr(op, "OPERATOR", type(op))


def operands_of(op: IRDLOperation, name: str) -> list[SSAValue]:
    """The operands of an instruction that have that name."""
    return [value for found, group in operand_groups(op) if found == name for value in group if value is not None]


def add_scratch(op: DerivedInstruction, shape: Shape, element: Attribute) -> SSAValue:
    """Allocate a buffer that lives as long as `op` runs, and append it to its @scratch operands."""
    allocation = AllocOp.of(buffer_type(shape, element), op.location)
    block = op.parent_block()
    assert block is not None
    block.insert_op_before(allocation, op)
    block.insert_op_after(DeallocOp.of(allocation.result, location=op.location), op)
    op.set_operands({"scratch": [*operands_of(op, "scratch"), allocation.result]})
    return allocation.result
