"""Pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, ClipOp, DivOp, GreaterOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import FLOAT_FUNCTIONS
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, MaxPoolOp, SumPoolOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.activations import activated
from glow_mlir.frontends.tflite.operators.products import SAME, same_pads


def _window(node: TfliteNode) -> dict[str, list[int]]:
    """The windows of a pool."""
    strides, kernel = ([node.step(field) for field in fields] for fields in ((2, 1), (4, 3)))
    is_same = node.options.number(0, "b") == SAME
    pads = same_pads(node.image(0)[1:3], kernel, strides, (1, 1)) if is_same else [0] * 4
    return {"kernel_shape": kernel, "strides": strides, "pads": pads}


@tflite_operator("MAX_POOL_2D", "AVERAGE_POOL_2D")
def pool_2d(node: TfliteNode) -> SSAValue:
    """The largest element, or the mean, of windows of [N, H, W, C]; the border does not count."""
    form = _window(node)
    if node.is_float():
        operator = MaxPoolOp if node.kind == "MAX_POOL_2D" else AvgPoolOp
        return activated(node, node.emit(operator, node.input(0), **form), node.activation)
    if node.output().dtype != node.tensor(0).dtype:
        raise node.unsupported(f"of {node.tensor(0).dtype} as {node.output().dtype} is not supported")
    to = node.type_of(node.output(), node.activation)
    found = node.emit(MaxPoolOp, node.input(0), **form) if node.kind == "MAX_POOL_2D" else _integer_mean(node, form)
    limits = (node.splat(limit.data, found) for limit in (to.least, to.most))
    return node.cast(node.emit(ClipOp, found, *limits), to.storage)


def _integer_mean(node: TfliteNode, form: Mapping[str, list[int]]) -> SSAValue:
    """The means of windows of quantized values, of i32, with halves rounded away from zero."""
    total = node.emit(SumPoolOp, node.input(0), **form)
    counts = _counts(node.image(0)[1:3], shape_of(total)[1:3], form)
    count, half = (
        node.constant(array, f"{node.name}.{role}") for array, role in ((counts, "count"), (counts // 2, "half"))
    )
    is_above = node.emit(GreaterOp, total, node.splat(0, total))
    moved = node.emit(WhereOp, is_above, node.emit(AddOp, total, half), node.emit(SubOp, total, half))
    return node.emit(DivOp, moved, count)


def _counts(sizes: Sequence[int], outputs: Sequence[int], form: Mapping[str, list[int]]) -> np.ndarray:
    """The number [1, H, W, 1] of elements of the image in each window."""
    along: list[np.ndarray] = []
    for axis, (size, count) in enumerate(zip(sizes, outputs, strict=True)):
        first = np.arange(count) * form["strides"][axis] - form["pads"][axis]
        last = np.minimum(first + form["kernel_shape"][axis], size)
        along.append(last - np.maximum(first, 0))
    return np.outer(*along).astype(np.int32).reshape(1, *outputs, 1)


@tflite_operator("L2_POOL_2D")
def l2_pool_2d(node: TfliteNode) -> SSAValue:
    """The root of the mean square of windows of [N, H, W, C]; the border does not count."""
    if not node.is_float():
        raise node.unsupported("of integers is not supported")
    squares = node.emit(MulOp, node.input(0), node.input(0))
    root = node.emit(FLOAT_FUNCTIONS["sqrt"], node.emit(AvgPoolOp, squares, **_window(node)))
    return activated(node, root, node.activation)
