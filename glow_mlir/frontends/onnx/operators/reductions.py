"""ONNX's reductions, and the operators that are reductions under another name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, EqualOp, MulOp, PowOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, SqrtOp
from glow_mlir.dialects.shapes import normalize_axis, rank_of
from glow_mlir.frontends.builder.agreement import with_least
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.operator_map import ATTRIBUTE_MAPS
from glow_mlir.ir.registry import onnx_operator

AXES_OPERAND: dict[str, tuple[type[ops.Reduction], int]] = {
    "ReduceL1": (ops.ReduceL1Op, 18),
    "ReduceL2": (ops.ReduceL2Op, 18),
    "ReduceLogSum": (ops.ReduceLogSumOp, 18),
    "ReduceLogSumExp": (ops.ReduceLogSumExpOp, 18),
    "ReduceMax": (ops.ReduceMaxOp, 18),
    "ReduceMean": (ops.ReduceMeanOp, 18),
    "ReduceMin": (ops.ReduceMinOp, 18),
    "ReduceProd": (ops.ReduceProdOp, 18),
    "ReduceSum": (ops.ReduceSumOp, 13),
    "ReduceSumSquare": (ops.ReduceSumSquareOp, 18),
}
"""ONNX operator → ours, and the first opset version in which the axes are an operand instead of an attribute."""


def _reduce(node: Node, operator: type[ops.Reduction], axes: Sequence[int]) -> SSAValue:
    return node.emit(operator, node.input(), axes=axes, keepdims=node.flag("keepdims", True))


def _by_attribute(operator: type[ops.Reduction]) -> Callable[[Node], SSAValue]:
    return lambda node: _reduce(node, operator, node.ints("axes", ()) or range(node.rank()))


def _by_operand(operator: type[ops.Reduction]) -> Callable[[Node], SSAValue]:
    def reduce(node: Node) -> SSAValue:
        axes = () if node.optional(1) is None else node.integers(1, "axes")
        every = () if node.flag("noop_with_empty_axes") else range(node.rank())
        return _reduce(node, operator, axes or every)

    return reduce


for _name, (_operator, _since) in AXES_OPERAND.items():
    onnx_operator(_name)(_by_attribute(_operator))
    onnx_operator(_name, since=_since)(_by_operand(_operator))


def _running(operator: type[ops.CumSumOp | ops.CumProdOp]) -> Callable[[Node], SSAValue]:
    return lambda node: node.emit(
        operator,
        node.input(),
        axis=node.integers(1, "the axis")[0],
        **ATTRIBUTE_MAPS["CumSum"].import_from(node),
    )


for _name, _total in {"CumSum": ops.CumSumOp, "CumProd": ops.CumProdOp}.items():
    onnx_operator(_name)(_running(_total))


@onnx_operator("TopK")
def top_k_attribute(node: Node) -> Sequence[SSAValue]:
    """`k` as an attribute, up to opset 9."""
    return _top_k(node, node.int("k"))


@onnx_operator("TopK", since=10)
def top_k(node: Node) -> Sequence[SSAValue]:
    """`k` as an operand; from opset 11 on, the smallest elements if `largest` is 0."""
    return _top_k(node, node.integers(1, "the number of elements")[0], **ATTRIBUTE_MAPS["TopK"].import_from(node))


def _top_k(node: Node, count: int, **attributes: AttributeValue) -> Sequence[SSAValue]:
    """The top `count` elements of an axis; a call with fewer elements fails."""
    value = node.input()
    if rank_of(value):
        value = with_least(node, value, normalize_axis(node.int("axis", -1), rank_of(value)), count)
    return node.emit_all(ops.TopKOp, value, k=count, **{"axis": node.int("axis", -1), **attributes})


def global_pool(operator: type[ops.Reduction]) -> Callable[[Node], SSAValue]:
    """A reduction over the spatial axes."""
    return lambda node: node.emit(operator, node.input(), axes=range(2, node.rank()))


for _name, _pool in {"GlobalAveragePool": ops.ReduceMeanOp, "GlobalMaxPool": ops.ReduceMaxOp}.items():
    onnx_operator(_name)(global_pool(_pool))

NORMS: dict[float, type[ops.Reduction]] = {1: ops.ReduceL1Op, 2: ops.ReduceL2Op}
"""p → the reduction that computes the p-norm."""


@onnx_operator("GlobalLpPool")
def global_lp_pool_float(node: Node) -> SSAValue:
    """The p-norm over the spatial axes; p is a float in opset 1."""
    return _global_norm(node, node.float("p", 2.0))


@onnx_operator("GlobalLpPool", since=2)
def global_lp_pool(node: Node) -> SSAValue:
    """The p-norm over the spatial axes."""
    return _global_norm(node, node.int("p", 2))


def _global_norm(node: Node, p: float) -> SSAValue:
    """The norm of any order over the spatial axes."""
    if p in NORMS:
        return global_pool(NORMS[p])(node)
    x = node.input()
    powers = node.emit(PowOp, node.emit(AbsOp, x), node.constant(float(p), like=x))
    total = node.emit(ops.ReduceSumOp, powers, axes=range(2, node.rank()))
    return node.emit(PowOp, total, node.constant(1.0 / p, like=x))


@onnx_operator("LpNormalization")
def lp_normalization(node: Node) -> SSAValue:
    """Divide by the norm along an axis; the result is 0 if the norm is 0."""
    p = node.int("p", 2)
    if p not in NORMS:
        raise node.unsupported(f"the norm of order {p} does not exist, only 1 and 2 do")
    x = node.input()
    norm = node.emit(NORMS[p], x, axes=(node.int("axis", -1),))
    zero = node.constant(0.0, like=x)
    return node.emit(WhereOp, node.emit(EqualOp, norm, zero), zero, node.emit(DivOp, x, norm))


_MVN_AXES = (0, 2, 3)
"""The default axes, for images."""


@onnx_operator("MeanVarianceNormalization", since=9)
def mean_variance_normalization(node: Node) -> SSAValue:
    """The difference from the mean, divided by the deviation; ONNX adds its epsilon of 1e-9 to the deviation."""
    axes = node.ints("axes", _MVN_AXES)
    if not node.has("axes") and node.rank() < 4:
        axes = tuple(axis for axis in _MVN_AXES if axis < node.rank())
        node.doubt(f"axes {list(_MVN_AXES)} do not fit rank {node.rank()}", f"{list(axes)} are used", "set axes")
    return standardized(node, axes)


def standardized(node: Node, axes: Sequence[int], has_variance: bool = True) -> SSAValue:
    """The difference from the mean over some axes, divided by the deviation if `has_variance`."""
    difference = node.emit(SubOp, node.input(), node.emit(ops.ReduceMeanOp, node.input(), axes=axes))
    if not has_variance:
        return difference
    variance = node.emit(ops.ReduceMeanOp, node.emit(MulOp, difference, difference), axes=axes)
    deviation = node.emit(AddOp, node.emit(SqrtOp, variance), node.constant(1e-9, like=variance))
    return node.emit(DivOp, difference, deviation)
