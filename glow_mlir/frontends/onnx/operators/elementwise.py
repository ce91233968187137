"""ONNX's elementwise operators that are not plain, and older forms of the plain ones."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import onnx
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import is_narrow_float
from glow_mlir.dialects.glow_high import activations as act
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as math
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.narrow_floats import is_power_of_two
from glow_mlir.dialects.shapes import element_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.models.types import element_of_onnx
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.attribute_map import AttributeMap, real
from glow_mlir.frontends.onnx.operators.operator_map import PLAIN_OPERATORS, PlainOperator
from glow_mlir.frontends.onnx.operators.plain_operators import plain_importer
from glow_mlir.frontends.onnx.values import Strings, Value, takes_values
from glow_mlir.ir.registry import onnx_operator

LIMITED_BROADCAST = frozenset(
    {"Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"},
)
"""Binary operators whose broadcasting is controlled by attributes up to opset 6."""


def _aligned(node: Node, axis: int | None) -> SSAValue:
    """
    The second operand with its axes aligned to those of the first from `axis` on, by default to the last axes.

    Raises `ModelError` if its shape is not a part of the first operand's shape; sizes of 1 match any size.
    """
    shape, right = node.shape(0), node.shape(1)
    if prod(right) == 1:
        return node.emit(ReshapeOp, node.input(1), shape=())
    first = len(shape) - len(right) if axis is None else axis + (len(shape) if axis < 0 else 0)
    part = shape[max(first, 0) : max(first, 0) + len(right)]
    fits = len(part) == len(right) and all(size in (1, whole) for size, whole in zip(right, part, strict=True))
    if first < 0 or not fits:
        where = "at the end" if axis is None else f"from axis {axis} on"
        hint = "up to opset 6, the second operand has consecutive axes of the first"
        raise ModelError(f"{node.kind}: {right} is not in {shape} {where}", node=node.name, hint=hint)
    return node.emit(ReshapeOp, node.input(1), shape=(*right, *(1,) * (len(shape) - first - len(right))))


def _limited(operator: type[HighOp]) -> Callable[[Node], SSAValue]:
    """The form up to opset 6: operands of the same shape, or with `broadcast` the second expanded to the first."""

    def importer(node: Node) -> SSAValue:
        if node.flag("broadcast"):
            return node.emit(operator, node.input(0), _aligned(node, node.int("axis") if node.has("axis") else None))
        if node.shape(0) != node.shape(1):
            hint = "up to opset 6, the attribute broadcast allows that"
            raise ModelError(f"{node.kind}: {node.shape(0)} is not {node.shape(1)}", node=node.name, hint=hint)
        return node.emit(operator, node.input(0), node.input(1))

    return importer


for _name in LIMITED_BROADCAST:
    onnx_operator(_name)(_limited(PLAIN_OPERATORS[_name].operator))

_SELU = PlainOperator("Selu", act.SeluOp, AttributeMap(real("alpha", 1.6732), real("gamma", 1.0507)))
"""Its defaults up to opset 5."""

onnx_operator(_SELU.kind)(plain_importer(_SELU))


@onnx_operator("PRelu")
def prelu_by_channel(node: Node) -> SSAValue:
    """The form up to opset 6: one slope for each channel (axis 1)."""
    slope = node.input(1)
    if node.rank(1) == 1 and node.rank() > 1:
        slope = node.emit(ReshapeOp, slope, shape=(*node.shape(1), *(1,) * (node.rank() - 2)))
    return node.emit(act.PReluOp, node.input(0), slope)


def _folded(operator: type[HighOp]) -> Callable[[Node], SSAValue]:
    def fold(node: Node) -> SSAValue:
        first, *rest = node.present()
        for value in rest:
            first = node.emit(operator, first, value)
        return first

    return fold


for _name, _operator in {"Max": binary.MaxOp, "Min": binary.MinOp, "Sum": binary.AddOp}.items():
    onnx_operator(_name)(_folded(_operator))


@onnx_operator("Mean")
def mean(node: Node) -> SSAValue:
    """The mean of all operands."""
    total = _folded(binary.AddOp)(node)
    count = node.constant(float(len(node.present())), like=total)
    return node.emit(binary.DivOp, total, count)


@onnx_operator("Swish")
def swish(node: Node) -> SSAValue:
    """x · sigmoid(alpha · x); not a plain operator, because the exported opset does not have it."""
    return node.emit(act.SwishOp, node.input(), alpha=node.float("alpha", 1.0))


@onnx_operator("BitShift")
def bit_shift(node: Node) -> SSAValue:
    """Shift to the left or right."""
    return node.emit(binary.BitShiftOp, node.input(0), node.input(1), direction=node.text("direction").lower())


@onnx_operator("Cast")
def cast_by_name(node: Node) -> SSAValue:
    """Convert to an element type given by name, up to opset 5."""
    name = node.text("to").upper()
    known = dict(onnx.TensorProto.DataType.items())
    if name not in known:
        hint = "the names are those of onnx.TensorProto.DataType"
        raise ModelError(f"Cast: there is no element type '{name}'", node=node.name, hint=hint)
    return node.emit(math.CastOp, node.input(), to=element_of_onnx(known[name], "the result of Cast"))


@onnx_operator("Cast", since=6)
@takes_values
def cast(node: Node) -> Value:
    """Convert to another element type; strings can only stay strings."""
    if isinstance(words := node.operand(), Strings) and node.int("to") == onnx.TensorProto.STRING:
        return words
    return converted(node, node.input(), element_of_onnx(node.int("to"), "the result of Cast"))


@onnx_operator("CastLike")
def cast_like(node: Node) -> SSAValue:
    """Convert to the element type of the second operand."""
    return converted(node, node.input(), element_of(node.input(1)))


def converted(node: Node, value: SSAValue, to: Attribute) -> SSAValue:
    """Convert a value to another element type; the node's attributes specify saturation and rounding."""
    if not is_narrow_float(to):
        return node.emit(math.CastOp, value, to=to)
    mode = node.text("round_mode", "up") if is_power_of_two(to) else "nearest"
    return node.emit(math.CastOp, value, to=to, saturate=node.flag("saturate", True), round_mode=mode)


@onnx_operator("BitCast", since=26)
def bit_cast(node: Node) -> SSAValue:
    """Reinterpret the bits as another element type."""
    return node.emit(math.BitCastOp, node.input(), to=element_of_onnx(node.int("to"), "the result of BitCast"))


@onnx_operator("Clip")
def clip_attributes(node: Node) -> SSAValue:
    """Limits as attributes, up to opset 10."""
    limits = [node.constant(node.float(name), like=node.input()) if node.has(name) else None for name in ("min", "max")]
    return node.emit(binary.ClipOp, node.input(), *limits)


@onnx_operator("Clip", since=11)
def clip(node: Node) -> SSAValue:
    """Limits as operands."""
    return node.emit(binary.ClipOp, node.input(), node.optional(1), node.optional(2))
