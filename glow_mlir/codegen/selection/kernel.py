"""What a kernel is: which instructions it executes, what it wants prepared, and how it becomes `llvm` ops."""

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
The operators that a kernel executes: what it is asked about, and given to emit, is one of them, or an instruction of
one, which has the same operands, properties and methods.
"""

OpT_co = TypeVar("OpT_co", bound=Operation, default=Any, covariant=True)


@dataclass(frozen=True)
class Operand:
    """
    One operand inside a kernel: the address of its first element, and its static type.

    Of @scratch that each worker has one of, the first axis counts the workers and is `hidden`.
    """

    pointer: Value
    value: SSAValue
    hidden: int = 0
    symbols: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """What the symbols in its sizes are, by name."""
    quotients: dict[Quotient, Index] = field(default_factory=dict[Quotient, Index])
    """The quotients in sizes that are computed where its extents are, or in front of that; its own come to them."""

    @property
    def shape(self) -> Shape:
        """Sizes of the axes; raises `RunTimeSizeError` where one is known at run time only."""
        return shape_of(self.value)[self.hidden :]

    @property
    def sizes(self) -> Sizes:
        """Sizes of the axes: numbers, or what is known of them before run time."""
        return sizes_of(self.value)[self.hidden :]

    @cached_property
    def extents(self) -> Extents:
        """Sizes of the axes: numbers of Python, or values of the function where symbols decide."""
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
    Sizes as numbers of Python where they are numbers, else as values, where symbols have these values.

    Each quotient is computed once: `quotients` has those that are, and gets the others.
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
    """What a size is a multiple of: neither is negative, nor is what a quotient is of."""
    if isinstance(factor, Symbol):
        return symbols[factor.name]
    if factor not in quotients:
        quotients[factor] = _extent(factor.dividend, symbols, quotients) // factor.divisor
    return quotients[factor]


@dataclass(frozen=True)
class KernelCall(Generic[OpT_co]):
    """
    What a kernel gets to emit one function: a builder, the instruction, and its operands by name.

    Where the instruction is cut into parts, the function runs one of them, that of `cut` along `axis`, in one of the
    rounds that the kernel has there.
    """

    b: Builder
    module: ModuleBuilder
    op: OpT_co
    operands: Mapping[str, Sequence[Operand]]
    axis: str = ""
    cut: Partition = ALL
    round: Value | None = None
    """The number of the round; `None` where the function runs all of them."""
    symbols: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """What the symbols in the sizes of its operands are, by name."""
    failed: Value | None = None
    """Where the function notes that the instruction fails; `None` for one that never does (`HighOp.FAILURE`)."""
    quotients: Mapping[Quotient, Index] = field(default_factory=dict[Quotient, Index])
    """The quotients in sizes of its operands, computed in front of all branches."""
    cancelled: Value | None = None
    """Where it stands whether the call is to end; `None` where nobody ends it, or the kernel does not look."""

    def is_cancelled(self) -> Value:
        """Whether the call is to end, as an i1: what the instruction gives then means nothing."""
        if self.cancelled is None:
            return self.b.constant(0, i1)
        return self.b.atomic_load(self.cancelled, i32, "monotonic").ne(0)

    @contextmanager
    def unless_cancelled(self) -> Generator[None]:
        """Run the block unless the call is to end."""
        if self.cancelled is None:
            yield
            return
        with self.b.when(~self.is_cancelled()):
            yield

    def share(self, axis: str) -> Partition:
        """What the function runs of the steps along an axis of the kernel: all, unless it is cut along that one."""
        return self.cut if axis == self.axis else ALL

    def runs(self, *axes: str) -> bool:
        """Whether the code that is cut along one of these axes belongs into the function."""
        return not self.axis or self.axis in axes

    def extents(self, sizes: Sizes) -> Extents:
        """Sizes as numbers of Python where they are numbers, and as values of the function where symbols decide."""
        return extents_at(sizes, self.symbols, dict(self.quotients))

    def fail(self) -> None:
        """Let the instruction fail where control comes here. It goes on, and reaches nothing but its operands."""
        assert self.failed is not None
        self.failed.store(self.b.constant(1, i32))

    @property
    def target(self) -> Target:
        """The machine that is compiled for."""
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
"""What a kernel chooses for an instruction, as names and numbers: sizes of tiles and blocks, 1 and 0 for yes and no."""

Buffer = tuple[Shape, Attribute]
"""Shape and element type of a buffer."""


@dataclass(frozen=True)
class Choice:
    """What one of the tiles may be, and whether the kernel needs it."""

    values: Sequence[int]
    needed: bool = False


UNBOUNDED = 1 << 62
"""The largest number of a tile that may be as large as there is anything."""

YES_OR_NO = range(2)
"""What a tile may be that stands for a decision."""


class Kernel(ABC, Generic[OpT]):
    """
    Executes some instructions on a CPU: those of the operators that are its type argument, as `Kernel[A | B]`.

    A kernel emits one function for each distinct instruction (types, properties and body); its arguments are the
    addresses of the operands. Heavy inner loops belong into functions shared by `ModuleBuilder.shared`.
    """

    name: ClassVar[str]
    NAMED_BY_INSTRUCTION: ClassVar[bool] = False
    """Whether functions are called like their instruction: for a kernel of so many that its own name says little."""
    passes: ClassVar[str] = ""
    """LLVM IR passes for the function, a key of `codegen.llvm.objects.PASS_LISTS`."""
    EPILOGUE: ClassVar[bool] = False
    """Whether the kernel applies epilogues whose extra operands have their columns side by side."""
    STRIDED_INNER: ClassVar[bool] = False
    """Whether the kernel is as fast where elements along the innermost axis of an operand lie apart."""
    PROLOGUE: ClassVar[bool] = False
    """Whether the kernel applies prologues of that kind, once to each element."""

    AXES: ClassVar[tuple[str, ...]] = ()
    """
    Names of the axes along which instructions are cut into parts, in the order in which the code for them runs. An
    instruction has all its code cut along one axis, or consecutive phases that are cut along one each.
    """

    ROW_TILING: ClassVar[bool] = False
    """
    Whether the kernel computes some lines of an image as it would among all lines: as fast, and, with `image_lines`,
    the same bits.
    """

    SUMMING: ClassVar[tuple[str, ...]] = ()
    """
    Names of the tiles on which it depends in which order sums are taken, and so the last digits of results. For any
    number of threads, `candidates` have the same numbers there.
    """

    LEAN: ClassVar[bool] = True
    """Whether scratch and packed operands take about as much memory as the operands themselves."""

    STRICT: ClassVar[bool] = True
    """Whether the error of sums keeps the bound of docs/floating-point.md for plain ones."""

    RUN_TIME_SIZES: ClassVar[bool] = False
    """Whether the kernel takes sizes that are known at run time only, wherever `accepts` asks for no number."""

    TIME_BY_VALUES: ClassVar[bool] = False
    """
    Whether values decide how long the kernel takes: it then looks whether the call is to end before it is done
    (`KernelCall.unless_cancelled`).
    """

    READS_ZERO_POINTS: ClassVar[bool] = False
    """Whether code depends on the zero points of quantized operands, not on how they are stored alone."""

    ONLY_PACKED: ClassVar[bool] = False
    """Whether the kernel executes an instruction only when its operands are packed."""

    operators: ClassVar[tuple[type[Operation], ...]] = ()
    """The operators, or bases of operators, that the kernel is asked about: its type argument."""

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
        """Whether `op` is one of the operators of the kernel or an instruction of one, and so may be asked about."""
        return issubclass(kind_of(op), self.operators)

    def accepts(self, op: OpT) -> bool:
        """
        Whether the kernel executes `op`, one of its operators or an instruction of one: by default it does.

        Operators are asked before lowering, so that what no kernel accepts is lowered. Types, properties and bodies
        decide, and which operands are constants or the same: what is alike in these is asked about once
        (`selection.form`).
        """
        return True

    def suits(self, op: OpT, target: Target) -> bool:
        """
        Whether the sizes of an instruction that the kernel accepts suit a target: by default any do.

        Where they do not, it has no candidates.
        """
        return True

    def candidates(self, op: OpT, storage: Storage, target: Target) -> Sequence[Tiles]:
        """
        The tiles with which the kernel executes an instruction that it accepts, the best guess of its cost model first.

        Empty tiles stand for an instruction where there is nothing to choose; no tiles at all for one whose sizes do
        not suit the target, or whose operands would have to be constants.
        """
        return ({},)

    def is_profitable(self, op: OpT, storage: Storage, target: Target) -> bool:
        """
        Whether to select the kernel for an instruction for which it has candidates, where nothing is measured; kernels
        behind it are asked otherwise.
        """
        return True

    def choices(self, op: OpT, target: Target) -> Mapping[str, Choice]:
        """What the tiles of a selected instruction may be, by name; its `candidates` are among them."""
        return {}

    def packed(self, op: OpT, target: Target) -> Mapping[str, PackedForm]:
        """
        The operands to pack where they are constants or state, of an instruction with this kernel and its tiles: all
        or none.

        The same before and after they are packed; empty where the sizes do not suit the target.
        """
        return {}

    def scratch(self, op: OpT, target: Target) -> Sequence[Buffer]:
        """The @scratch operands that a prepared instruction needs; of `private` ones, each worker needs one."""
        return ()

    def cuts(self, op: OpT, target: Target) -> Mapping[str, int]:
        """
        The axes to cut a prepared instruction along, one for each phase, and how many steps each has.

        Empty where it cannot be cut. What an element of the result is computed from, and in which order, may not
        depend on it.
        """
        return {}

    def rounds(self, op: OpT, axis: str, target: Target) -> Size:
        """
        How often all parts along an axis run, one time after the other.

        Neighbouring axes with as many rounds, more than one or as many as symbols say, take turns in each.
        """
        return 1

    def threads(self, op: OpT, axis: str, target: Target) -> int:
        """
        How many threads of a device run a part along an axis together, with barriers (`codegen.blocks`); 1 for code
        that one thread runs.
        """
        return 1

    def private(self, op: OpT) -> Sequence[int]:
        """Numbers of the @scratch operands that each worker needs for itself."""
        return ()

    @abstractmethod
    def emit(self, call: KernelCall[OpT]) -> None:
        """Emit the function's body."""


def tiles_of(op: Operation) -> Tiles:
    """The tiles that were chosen for an instruction; empty where there was nothing to choose."""
    tiles = op.properties.get("tiles")
    return {name: integer(size) for name, size in tiles.data.items()} if isinstance(tiles, DictionaryAttr) else {}


def kind_of(op: OpT) -> type[OpT]:
    """The operator class of an operator or of its instruction; the class itself for other instructions."""
    return getattr(op, "OPERATOR", type(op))


def operands_of(op: IRDLOperation, name: str) -> list[SSAValue]:
    """The operands of that name which an instruction has."""
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
