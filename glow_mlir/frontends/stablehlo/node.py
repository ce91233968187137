"""One operation of StableHLO under import."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IntegerAttr,
    NameLoc,
    StringAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp
from glow_mlir.dialects.shapes import declared_shape, element_of, sizes_of
from glow_mlir.dialects.stablehlo.attributes import WordAttr
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.formulas import Formulas
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes

MAX_CALLS = 64
"""The largest depth of calls of functions, which are inlined."""

MAX_INLINED = 1 << 16
"""The largest number of calls of functions that are inlined, those within inlined functions included."""


@dataclass(frozen=True)
class ComplexValue:
    """Complex numbers as two tensors of floats."""

    real: SSAValue
    imaginary: SSAValue


@dataclass(frozen=True)
class TupleValue:
    """A tuple of values, which only lives while a program is imported."""

    items: tuple[Value, ...]


Value = SSAValue | ComplexValue | TupleValue
"""What a value of StableHLO is in `glow_high`."""


def parts_of_array(array: np.ndarray) -> list[np.ndarray]:
    """The arrays that an array is at the border of a program: itself, or both parts of complex numbers."""
    return [np.real(array).copy(), np.imag(array).copy()] if array.dtype.kind == "c" else [array]


def complex_array(real: np.ndarray, imaginary: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The array of complex numbers that has those parts, infinities and signs of zero among them."""
    array = np.empty(real.shape, dtype)
    array.real, array.imag = real, imaginary
    return array


def parts_of(value: Value) -> list[SSAValue]:
    """The tensor that a value is, both parts of complex numbers, or those of all items of a tuple."""
    if isinstance(value, TupleValue):
        return [part for item in value.items for part in parts_of(item)]
    return [value.real, value.imaginary] if isinstance(value, ComplexValue) else [value]


def of_parts(parts: Sequence[SSAValue]) -> Value:
    """The value of one part, or the complex numbers of two."""
    return ComplexValue(*parts) if len(parts) > 1 else parts[0]


Importer = Callable[["StablehloNode"], "Value | Sequence[Value]"]
"""Emits the operators of an operation, and returns its results."""

Function = TypeVar("Function", bound=Importer)

IMPORTERS: dict[str, Importer] = {}
"""Name of an operation, with its dialect → its importer."""

MOVES: set[str] = set()
"""The operations that only move elements: those of complex numbers are moved part by part."""


COMPLEX: dict[str, Importer] = {}
"""Name of an operation → its importer for complex operands, if it is not that of other ones."""


def stablehlo_operator(*kinds: str, moves: bool = False, of_complex: bool = False) -> Callable[[Function], Function]:
    """
    Register the importer of operations.

    With `moves`, it only moves elements of operands, whatever they are; with `of_complex`, it is that of complex
    operands.
    """

    def register(importer: Function) -> Function:
        for kind in kinds:
            name = kind if "." in kind else f"stablehlo.{kind}"
            (COMPLEX if of_complex else IMPORTERS)[name] = importer
            if moves:
                MOVES.add(name)
        return importer

    return register


class UnfinishedError(Exception):
    """A block has operations that are not supported, which the problems of the builder name."""


@dataclass
class Program:
    """A program under import: its functions, and the value of each of its values."""

    builder: ModuleBuilder
    functions: Mapping[str, FuncOp]
    resources: Mapping[Operation, np.ndarray] = field(default_factory=dict[Operation, np.ndarray])
    """The constants that the program's text leaves out."""
    values: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    calls: list[str] = field(default_factory=list[str])
    """The names of the functions that are being inlined, each of which calls the next one."""
    inlined: int = 0
    """The number of calls that were inlined."""
    is_vectorized: bool = False
    """Whether a region of scalars is emitted for tensors."""

    def run(self, block: Block, arguments: Sequence[Value]) -> list[Value]:
        """Emit the operators of a block for these arguments; gives the operands of its terminator."""
        if len(arguments) != len(block.args):
            raise ModelError(f"a block takes {len(block.args)} values, not {len(arguments)}")
        self.values.update(zip(block.args, arguments, strict=True))
        for op in block.ops:
            if op.name in TERMINATORS:
                if any(operand not in self.values for operand in op.operands):
                    raise UnfinishedError
                return [self.values[operand] for operand in op.operands]
            self._import(op)
        raise ModelError("a block has no terminator", hint="the file is cut off")

    def _import(self, op: Operation) -> None:
        node = StablehloNode(self, op)
        with self.builder.node_errors(op.name, node.name):
            if any(operand not in self.values for operand in op.operands):
                return
            with suppress(UnfinishedError):
                self.values.update(zip(op.results, node.results_of(), strict=True))


TERMINATORS = ("func.return", "stablehlo.return")
"""The operations that end a block."""

SHAPES = ("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose")
"""The operations that do nothing to a scalar."""


class StablehloNode(NodeBuilder):
    """Build the operators for one operation of a program."""

    def __init__(self, program: Program, op: Operation) -> None:
        name = _name_of(op)
        super().__init__(program.builder, op.name, name, named_location(name), [])
        self.program, self.op = program, op
        self.properties: Mapping[str, Attribute] = op.properties
        """The properties of the operation; for a composite one, the attributes that it hands over."""
        self.formulas = Formulas(self)
        self._parts: Sequence[Value] | None = None
        """The operands that take the place of those of the operation: parts of complex numbers, or repeated ones."""
        self._computations: Sequence[Block] | None = None
        """The functions that take the place of the regions of the operation."""

    def results_of(self) -> Sequence[Value]:
        """Emit the operators of the operation; raises `UnsupportedError` for one that has no importer."""
        is_complex = any(isinstance(self.value(position), ComplexValue) for position in range(self.count))
        if self.kind == "stablehlo.composite" and self.text("name") in (COMPLEX if is_complex else IMPORTERS):
            attributes = self.op.properties.get("composite_attributes")
            self.kind = self.text("name")
            self.properties = attributes.data if isinstance(attributes, DictionaryAttr) else {}
        importer = IMPORTERS.get(self.kind)
        if importer is None:
            raise self.unsupported("is not supported")
        if self.program.is_vectorized and self.kind in SHAPES:
            return [self.value(0)]
        if is_complex:
            if self.kind in MOVES:
                return self.by_parts(importer)
            importer = COMPLEX.get(self.kind, importer)
        return self._checked(listed(importer(self)))

    def by_parts(self, importer: Importer) -> list[Value]:
        """The results of an importer for the parts of complex numbers, one after the other."""
        operands = [self.value(position) for position in range(self.count)]
        found: list[Sequence[Value]] = []
        for part in ("real", "imaginary"):
            self._parts = [getattr(value, part) if isinstance(value, ComplexValue) else value for value in operands]
            found.append(listed(importer(self)))
        self._parts = None
        return [self.complex(*pair) for pair in zip(*found, strict=True)]

    def delegated(
        self,
        kind: str,
        operands: Sequence[Value],
        properties: Mapping[str, Attribute] | None = None,
        computations: Sequence[Block] | None = None,
    ) -> Value | Sequence[Value]:
        """
        What another operation of this name gives for these operands.

        It has the properties and regions of this one, unless others are given.
        """
        around = self.kind, self._parts, self.properties, self._computations
        self.kind, self._parts = kind, operands
        self.properties = self.properties if properties is None else properties
        self._computations = self._computations if computations is None else computations
        try:
            return IMPORTERS[kind](self)
        finally:
            self.kind, self._parts, self.properties, self._computations = around

    def _checked(self, found: Sequence[Value]) -> Sequence[Value]:
        """Raise `ModelError` if the results are not of the types that the program says."""
        if len(found) != len(self.op.results):
            raise ModelError(f"{self.kind}: has {len(self.op.results)} results, not {len(found)}", node=self.name)
        for result, value in zip(self.op.results, found, strict=True):
            declared = result.type
            if self.program.is_vectorized or not isinstance(value, SSAValue) or not isinstance(declared, TensorType):
                continue
            sizes, shape = sizes_of(value), declared_shape(cast("Attribute", declared))
            fits = len(sizes) == len(shape) and all(
                not isinstance(size, int) or given < 0 or given == size
                for size, given in zip(sizes, shape, strict=True)
            )
            if not fits or declared.element_type != element_of(value):
                reason = f"{self.kind}: the result is {value.type}, not {declared}"
                raise ModelError(reason, node=self.name, hint="the program is damaged")
        return found

    # Operands

    @property
    def count(self) -> int:
        """The number of operands."""
        return len(self.op.operands if self._parts is None else self._parts)

    def value(self, position: int) -> Value:
        """What an operand is."""
        return self.program.values[self.op.operands[position]] if self._parts is None else self._parts[position]

    def input(self, position: int = 0) -> SSAValue:
        """An operand; raises `UnsupportedError` for complex numbers and tuples."""
        return self._plain(self.value(position))

    def _plain(self, value: Value) -> SSAValue:
        if isinstance(value, SSAValue):
            return value
        kind = "complex numbers" if isinstance(value, ComplexValue) else "tuples"
        raise self.unsupported(f"of {kind} is not supported")

    def inputs(self, first: int = 0, last: int | None = None) -> list[SSAValue]:
        """Operands from position `first` on, in front of `last`."""
        return [self.input(position) for position in range(self.count)[first:last]]

    def known_values(self, *values: SSAValue) -> list[SSAValue]:
        """Values of the program in `glow_high`; raises `UnsupportedError` for complex numbers and tuples."""
        return [self._plain(self.program.values[value]) for value in values]

    def complex(self, real: Value, imaginary: Value) -> ComplexValue:
        """Complex numbers of two parts."""
        assert isinstance(real, SSAValue)
        assert isinstance(imaginary, SSAValue)
        return ComplexValue(real, imaginary)

    # Properties

    def has(self, name: str) -> bool:
        """Whether there is a property."""
        return name in self.properties

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """A property that is a list of integers."""
        found = self.properties.get(name)
        if found is None:
            return tuple(default)
        if not isinstance(found, DenseArrayBase):
            raise self.unsupported(f"its property '{name}' is no list of integers")
        return tuple(int(item) for item in found.get_values())

    def integer(self, name: str, default: int = 0) -> int:
        """A property that is an integer, or a truth value."""
        found = self.properties.get(name)
        return found.value.data if isinstance(found, IntegerAttr) else default

    def text(self, name: str) -> str:
        """A property that is a string or one of a few words; empty where it is absent."""
        found = self.properties.get(name)
        return found.data if isinstance(found, StringAttr | WordAttr) else ""

    def padding(self, rank: int) -> list[tuple[int, int]]:
        """The property `padding`, pairs of numbers for each of `rank` dimensions; no padding where it is absent."""
        found = self.properties.get("padding")
        if found is None:
            return [(0, 0)] * rank
        assert isinstance(found, DenseIntOrFPElementsAttr)
        numbers = [int(number) for number in cast("Iterable[int]", found.get_values())]
        if len(numbers) == 1:
            numbers *= 2 * rank
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    # Results

    def declared(self, position: int = 0) -> TensorType[Attribute]:
        """The type that the program says a result has."""
        found = self.op.results[position].type
        if not isinstance(found, TensorType):
            raise self.unsupported(f"a result of type {found} is not supported")
        return cast("TensorType[Attribute]", found)

    def element(self, position: int = 0) -> Attribute:
        """The element type of a result; where parts of complex numbers take the place of operands, that of a part."""
        found = self.declared(position).element_type
        return (self._parts is not None and part_type(found)) or found

    def is_complex(self, position: int = 0) -> bool:
        """Whether a result is of complex numbers."""
        return isinstance(self.element(position), ComplexType)

    def static_shape(self, position: int = 0, like: Sizes = ()) -> tuple[int, ...]:
        """
        The shape that the program says a result has; sizes that it does not say are those of `like`.

        Raises `UnsupportedError` for one that is not known.
        """
        declared = declared_shape(self.declared(position))
        found = [like[axis] if size < 0 and like else size for axis, size in enumerate(declared)]
        shape = tuple(size for size in found if isinstance(size, int) and size >= 0)
        if len(shape) != len(declared):
            raise self.unsupported("with a size that is not known is not supported")
        return shape

    # Regions

    def region(self, position: int, arguments: Sequence[Value]) -> list[Value]:
        """Emit the operators of a region into the current block; gives what it returns."""
        return self.program.run(self.block(position), arguments)

    def block(self, position: int) -> Block:
        """The block of a region."""
        return self.op.regions[position].block if self._computations is None else self._computations[position]

    def called_computations(self) -> list[Block]:
        """The blocks of the functions that a call hands over; raises `ModelError` for one that is missing."""
        given = self.op.properties.get("called_computations")
        names = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else ()
        found: list[Block] = []
        for name in names:
            text = name.string_value() if isinstance(name, SymbolRefAttr) else str(name)
            if text not in self.program.functions:
                raise ModelError(f"{self.kind}: the program has no function '{text}'", node=self.name)
            found.append(self.program.functions[text].body.block)
        return found

    def mapped(self, position: int, arguments: Sequence[Value]) -> list[Value]:
        """Emit the operators of a region of scalars for tensors of one shape, element by element, and scalars."""
        around, self.program.is_vectorized = self.program.is_vectorized, True
        try:
            found = self.region(position, arguments)
        finally:
            self.program.is_vectorized = around
        shape = max((sizes_of(parts_of(value)[0]) for value in arguments), key=len, default=())
        # A result that depends on no argument is a scalar.
        return [of_parts([self._repeated(part, shape) for part in parts_of(value)]) for value in found]

    def _repeated(self, value: SSAValue, shape: Sizes) -> SSAValue:
        """A value in a shape, if it is a scalar."""
        return value if sizes_of(value) or not shape else self.emit(ExpandOp, value, shape=shape)

    # Values

    def reshaped(self, value: SSAValue, shape: Sequence[Size]) -> SSAValue:
        """A value in another shape, unless it has it."""
        return value if sizes_of(value) == tuple(shape) else self.emit(ReshapeOp, value, shape=tuple(shape))

    def number(self, number: float, like: SSAValue) -> SSAValue:
        """A scalar constant of the element type of `like`."""
        return self.splat(number, like)


def part_type(element: Attribute) -> Attribute | None:
    """The element type of the parts of complex numbers; `None` for another element type."""
    return cast("ComplexType[Any]", element).element_type if isinstance(element, ComplexType) else None


def of_floats(value: SSAValue) -> bool:
    """Whether a value is of floats."""
    return is_float(element_of(value))


def listed(found: Value | Sequence[Value]) -> Sequence[Value]:
    """The results of an importer, which may be one value."""
    return [found] if isinstance(found, SSAValue | ComplexValue | TupleValue) else found


def _name_of(op: Operation) -> str:
    """The name of an operation: that of its location, or else its kind."""
    location = op.location
    return location.desc.data if isinstance(location, NameLoc) else op.name.partition(".")[2]
