"""ONNX's operators that draw random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f32, f64, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import LessOrEqualOp
from glow_mlir.dialects.glow_high.normalization import SoftmaxOp
from glow_mlir.dialects.glow_high.reductions import CumSumOp, ReduceSumOp
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.formulas import converted
from glow_mlir.frontends.builder.random_numbers import RandomNumbers, computed_in, dropped_out
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.models.types import element_of_onnx
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import Sizes


def random_numbers(node: Node, sizes: Sizes) -> RandomNumbers:
    """Random numbers of a node, with the seed of the attribute `seed`, if present."""
    return RandomNumbers(node, sizes, node.float("seed") if node.has("seed") else None)


def _element(node: Node, default: Attribute) -> Attribute:
    """The element type of the attribute `dtype`, or else the default."""
    return element_of_onnx(node.int("dtype"), f"the result of {node.kind}") if node.has("dtype") else default


def _uniform(node: Node, sizes: Sizes, element: Attribute) -> SSAValue:
    low, high = node.float("low", 0.0), node.float("high", 1.0)
    return random_numbers(node, sizes).uniform(element, low, high)


def _normal(node: Node, sizes: Sizes, element: Attribute) -> SSAValue:
    return random_numbers(node, sizes).normal(element, node.float("mean", 0.0), node.float("scale", 1.0))


_Draw = Callable[[Node, Sizes, Attribute], SSAValue]


def _checked(draw: _Draw, node: Node, sizes: Sizes, element: Attribute) -> SSAValue:
    if not is_float(element):
        hint = "it generates floats: set its dtype"
        raise ModelError(f"{node.kind}: {element} is not a float type", node=node.name, hint=hint)
    return draw(node, sizes, element)


def _of_shape(draw: _Draw) -> Callable[[Node], SSAValue]:
    """Import an operator whose shape is an attribute."""
    return lambda node: _checked(draw, node, node.ints("shape"), _element(node, f32))


def _like(draw: _Draw) -> Callable[[Node], SSAValue]:
    """Import an operator with the operand's shape, and with its type unless `dtype` is given."""
    return lambda node: _checked(draw, node, node.sizes(), _element(node, node.element()))


for _name, _draw in {"RandomUniform": _uniform, "RandomNormal": _normal}.items():
    onnx_operator(_name)(_of_shape(_draw))
    onnx_operator(f"{_name}Like")(_like(_draw))


@onnx_operator("Bernoulli")
def bernoulli(node: Node) -> SSAValue:
    """1 with the probability given by each element of the operand, else 0."""
    numbers = random_numbers(node, node.sizes())
    wide = computed_in(node.element())
    drawn = numbers.fraction(wide) < converted(numbers.formulas.of(node.input()), wide)
    return numbers.formulas.value(converted(drawn, _element(node, node.element())))


@onnx_operator("Multinomial")
def multinomial(node: Node) -> SSAValue:
    """
    Draw `sample_size` classes for each row of unnormalized log-probabilities, with replacement.

    A number below the sum of all probabilities is drawn; the class is the number of prefix sums up to it.
    """
    node.check_rank(0, (2,), "a row has the logarithms of all classes")
    element = _element(node, i32)
    if element not in (i32, i64):
        raise ModelError(f"Multinomial: classes are i32 or i64, not {element}", node=node.name)
    (rows, classes), count = node.sizes(), node.int("sample_size", 1)
    numbers = random_numbers(node, (rows, count))
    formulas = numbers.formulas
    sums = node.emit(CumSumOp, node.emit(SoftmaxOp, node.cast(node.input(), f64), axis=1), axis=1)
    total = cut(node, sums, {1: (classes - 1, classes)})
    drawn = formulas.value(converted(numbers.fraction(f32), f64) * formulas.of(total))
    below = node.emit(
        LessOrEqualOp,
        node.emit(ReshapeOp, sums, shape=(rows, 1, classes)),
        node.emit(ReshapeOp, drawn, shape=(rows, count, 1)),
    )
    return node.emit(ReduceSumOp, node.cast(below, element), axes=(2,), keepdims=False)


def _kept_whole(node: Node, mask: Attribute) -> Sequence[SSAValue]:
    """The operand itself, and an all-true mask if it is used."""
    return (node.input(), *([node.splat(1, mask, node.sizes())] if node.wants(1) else ()))


def _dropped_out(node: Node, ratio: SSAValue | float, mask: Attribute) -> Sequence[SSAValue]:
    """
    Set a share of the elements to 0, and scale the others to preserve the expectation.

    The second result is the mask of kept elements. Raises `ModelError` unless 0 ≤ ratio < 1.
    """
    if isinstance(ratio, float) and not 0 <= ratio < 1:
        raise ModelError(f"Dropout: ratio {ratio:g} is not from 0 up to 1", node=node.name)
    if ratio == 0:
        return _kept_whole(node, mask)
    numbers = random_numbers(node, node.sizes())
    formulas, wide = numbers.formulas, computed_in(node.element())
    share = converted(formulas.of(ratio), wide) if isinstance(ratio, SSAValue) else ratio
    result, kept = dropped_out(numbers, node.input(), share)
    return (result, *([formulas.value(converted(kept, mask))] if node.wants(1) else ()))


@onnx_operator("Dropout")
def dropout_unless_test(node: Node) -> Sequence[SSAValue]:
    """The form up to opset 6: training unless `is_test`; the mask has the type of the operand."""
    return _dropped_out(node, 0.0 if node.flag("is_test") else node.float("ratio", 0.5), node.element())


@onnx_operator("Dropout", since=7)
def dropout_typed_mask(node: Node) -> Sequence[SSAValue]:
    """Inference; up to opset 9 the mask has the type of the operand."""
    return _kept_whole(node, node.element())


@onnx_operator("Dropout", since=10)
def dropout_in_test(node: Node) -> Sequence[SSAValue]:
    """Inference; the mask is boolean."""
    return _kept_whole(node, i1)


@onnx_operator("Dropout", since=12)
def dropout(node: Node) -> Sequence[SSAValue]:
    """Inference, unless the operand `training_mode` is true."""
    if node.optional(2) is None or not node.array(2, "training_mode").item():
        return _kept_whole(node, i1)
    ratio, known = node.optional(1), node.known(1)
    share = 0.5 if ratio is None else ratio if known is None else float(known.item())
    return _dropped_out(node, share, i1)
