"""A node of a traced graph under import."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    StringAttr,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES, is_bool, is_float, is_integer
from glow_mlir.dialects.expressions import Tensor
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.properties import made_of, word
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.builder.formulas import Formulas
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.torch.traced_graph import (
    Expression,
    Reference,
    SourceLocation,
    TracedNode,
    TracedTensor,
    TracedValue,
)
from glow_mlir.support.symbols import Size, Sizes, SymbolicSize

Scalar = int | float | bool | SymbolicSize
"""A number among the arguments of an operator."""

Operand = SSAValue | Scalar
"""An operand of elementwise operators."""


NO_OPERANDS: Mapping[str, tuple[TracedValue, ...]] = {}


def element_named(dtype: str, node: str = "") -> Attribute:
    """The element type of a PyTorch dtype; raises `UnsupportedError` if there is none."""
    if dtype not in ELEMENT_TYPES:
        kind = "complex numbers are" if dtype.startswith("complex") else f"the element type {dtype} is"
        hint = f"element types are {', '.join(ELEMENT_TYPES)}"
        raise UnsupportedError(f"{kind} not supported", node=node, hint=hint)
    return ELEMENT_TYPES[dtype]


def traced_location(name: str, source: SourceLocation) -> LocationAttr:
    """The location of a node: its module and name, with the line of the program."""
    label = f"{source.module}/{name}" if source.module else name
    if not source.file:
        return named_location(label)
    line = FileLineColLoc(StringAttr(source.file), IntAttr(source.line), IntAttr(0))
    return made_of(NameLoc, desc=word(label), location=line)


class TorchNode(NodeBuilder):
    """
    A node under import.

    `element` and `sizes` are the traced element type and sizes of its first result, `expected` those of all results.
    """

    def __init__(
        self,
        traced: TracedNode,
        builder: ModuleBuilder,
        results: list[tuple[Attribute, Sizes] | None],
        operands: Mapping[str, tuple[TracedValue, ...]] = NO_OPERANDS,
        symbols: dict[str, Size] | None = None,
    ) -> None:
        """
        `results` has the traced element types and sizes of results. `operands` has the traced results of other nodes
        and of inputs, by name; `symbols` has the sizes known so far.
        """
        source = traced.location
        label = f"{source.module}/{traced.name}" if source.module else traced.name
        super().__init__(builder, traced.target, label, traced_location(traced.name, source), [traced.name])
        self.traced = traced
        self.expected = results
        """Element type and sizes of each result; `None` if it is not a tensor, or a size depends on data."""
        self.operands = operands
        self.symbols = {} if symbols is None else symbols
        self.formulas = Formulas(self)

    # Results

    @property
    def element(self) -> Attribute:
        """The element type of the first result."""
        return self.result(0)[0]

    @property
    def sizes(self) -> Sizes:
        """The sizes of the first result."""
        return self.result(0)[1]

    def result(self, number: int) -> tuple[Attribute, Sizes]:
        """Element type and sizes of a result that is a tensor."""
        found = self.expected[number]
        assert found is not None
        return found

    def binds(self, size: Size, axis: int = 0, result: int = 0) -> None:
        """Define the traced symbol of a result's axis, whose size depends on data, as `size`."""
        traced = self.traced.results[result]
        assert isinstance(traced, TracedTensor)
        symbol = traced.sizes[axis]
        if isinstance(symbol, Expression) and symbol.word == "symbol":
            self.symbols.setdefault(str(symbol.value), size)

    # Operands

    def traced_operand(self, position: int) -> TracedTensor:
        """The traced tensor of an argument."""
        reference = self.traced.arguments[position]
        assert isinstance(reference, Reference)
        found = self.operands[reference.name][reference.index]
        assert isinstance(found, TracedTensor)
        return found

    def tensor(self, value: Operand, element: Attribute | None = None) -> SSAValue:
        """An operand converted to an element type, by default the result's; a number becomes a scalar."""
        element = self.element if element is None else element
        if isinstance(value, SSAValue):
            return self.cast(value, element)
        if isinstance(value, SymbolicSize):
            number = self.emit(ReshapeOp, self.emit(ShapeOp, sizes=(value,)), shape=())
            return self.cast(number, element)
        return self.scalar(value, element)

    def scalar(self, value: float, element: Attribute) -> SSAValue:
        """A scalar of an element type; for integer types the number is truncated, as in C."""
        if is_float(element) or is_bool(element):
            return self.splat(value, element)
        return self.splat(int(value), element)

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """Convert a value to an element type, unless it already has it."""
        return value if element_of(value) == element else self.emit(CastOp, value, to=element)

    def promoted(self, *operands: Operand) -> tuple[SSAValue, ...]:
        """Convert operands to their promoted element type."""
        element = promoted_type(operands)
        return tuple(self.tensor(operand, element) for operand in operands)

    def expanded(self, value: SSAValue, sizes: Sizes | None = None) -> SSAValue:
        """Broadcast a value to sizes, by default those of the result."""
        sizes = self.sizes if sizes is None else sizes
        return value if sizes_of(value) == tuple(sizes) else self.emit(ExpandOp, value, shape=sizes)

    def reshaped(self, value: SSAValue, sizes: Sizes | None = None) -> SSAValue:
        """Reshape a value, by default to the sizes of the result."""
        sizes = self.sizes if sizes is None else tuple(sizes)
        return value if sizes_of(value) == sizes else self.emit(ReshapeOp, value, shape=sizes)

    def of(self, value: Operand, element: Attribute | None = None) -> Tensor:
        """The operand of formulas for a value or number."""
        return self.formulas.of(self.tensor(value, element))

    def value(self, formula: Tensor) -> SSAValue:
        """The value of a formula."""
        return self.formulas.value(formula)

    @property
    def wide(self) -> Attribute:
        """The float type in which PyTorch computes results of this element type."""
        return wide_type(self.element)

    def array(self, value: SSAValue, role: str) -> np.ndarray:
        """The constant array of a value; raises errors like `required_array`."""
        return self.required_array(value, role)


def wide_type(element: Attribute) -> Attribute:
    """The float type in which PyTorch accumulates and computes functions of an element type."""
    return f64 if element == f64 else f32


def rank(value: SSAValue) -> int:
    """The number of axes of a value."""
    return rank_of(value)


def axis_of(axis: int, count: int) -> int:
    """The non-negative position of an axis, for a rank of `count`; 0 for a scalar."""
    return axis % max(count, 1)


_CATEGORIES = (is_bool, is_integer, is_float)


def _category(element: Attribute) -> int:
    """0 for truth values, 1 for integers, 2 for floats."""
    return next(number for number, holds in enumerate(_CATEGORIES) if holds(element))


def _category_of_number(value: Scalar) -> int:
    return 0 if isinstance(value, bool) else 2 if isinstance(value, float) else 1


_DEFAULTS = (i1, i64, f32)


def promoted_type(operands: tuple[Operand, ...]) -> Attribute:
    """
    The element type of a computation with tensors and numbers, by PyTorch's rules of type promotion.

    Tensors with axes take precedence over those without, and these over numbers, unless their category is lower.
    """
    groups: list[list[Attribute]] = [[], [], []]
    for operand in operands:
        if isinstance(operand, SSAValue):
            groups[0 if rank_of(operand) else 1].append(element_of(operand))
        else:
            groups[2].append(_DEFAULTS[_category_of_number(operand)])
    found: Attribute | None = None
    for group in groups:
        if not group:
            continue
        own = group[0]
        for other in group[1:]:
            own = common_type(own, other)
        if found is None or _category(own) > _category(found):
            found = own
    assert found is not None
    return found


def common_type(one: Attribute, other: Attribute) -> Attribute:
    """The element type to which two others are promoted (`torch.promote_types`)."""
    if one == other:
        return one
    categories = _category(one), _category(other)
    if categories[0] != categories[1]:
        return one if categories[0] > categories[1] else other
    if is_float(one):
        if {one, other} == {f16, bf16}:
            return f32
        order = (f16, bf16, f32, f64)
        return max(one, other, key=lambda element: order.index(element) if element in order else -1)
    widths = {element: int(str(element).lstrip("usi")) for element in (one, other)}
    signed = [element for element in (one, other) if not str(element).startswith("u")]
    if len(signed) != 1:
        return max(one, other, key=lambda element: widths[element])
    unsigned = other if signed[0] == one else one
    if widths[signed[0]] > widths[unsigned]:
        return signed[0]
    return ELEMENT_TYPES[f"int{min(2 * widths[unsigned], 64)}"]
