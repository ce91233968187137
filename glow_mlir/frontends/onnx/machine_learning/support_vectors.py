"""The support vector machines of ai.onnx.ml, which are those of libsvm (Chang and Lin)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import SigmoidOp, TanhOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    GreaterOp,
    GreaterOrEqualOp,
    MulOp,
    PowOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import ExpOp, NegOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.reductions import ArgMaxOp, ReduceMaxOp, ReduceSumOp
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.machine_learning.encoders import ML
from glow_mlir.frontends.onnx.machine_learning.labels import label_count, labels
from glow_mlir.frontends.onnx.machine_learning.linear_models import rows_of
from glow_mlir.frontends.onnx.machine_learning.pairwise_probabilities import class_probabilities
from glow_mlir.frontends.onnx.machine_learning.post_transforms import transformed
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import Value
from glow_mlir.ir.registry import onnx_operator


def _products(node: Node, rows: SSAValue, vectors: np.ndarray) -> SSAValue:
    """The product of each row with each vector [V, C], as f32 [N, V]."""
    return node.emit(MatMulOp, rows, node.constant(np.ascontiguousarray(vectors.T), "vectors"))


def _kernel(node: Node, rows: SSAValue, vectors: np.ndarray) -> SSAValue:
    """The kernel of each row with each vector [V, C], as f32 [N, V]."""
    gamma, coef0, degree = node.floats("kernel_params", ()) or (0.0, 0.0, 3.0)
    products = _products(node, rows, vectors)
    match node.text("kernel_type", "LINEAR"):
        case "LINEAR":
            return products
        case "POLY":
            return node.emit(PowOp, _affine(node, products, gamma, coef0), node.splat(degree, products))
        case "SIGMOID":
            return node.emit(TanhOp, _affine(node, products, gamma, coef0))
        case "RBF":
            return _gaussian(node, rows, vectors, products, gamma)
        case word:
            hint = "LINEAR, POLY, RBF or SIGMOID"
            raise ModelError(f"{node.kind}: there is no kernel '{word}'", node=node.name, hint=hint)


def _affine(node: Node, value: SSAValue, factor: float, offset: float) -> SSAValue:
    return node.emit(AddOp, node.emit(MulOp, value, node.splat(factor, value)), node.splat(offset, value))


def _gaussian(node: Node, rows: SSAValue, vectors: np.ndarray, products: SSAValue, gamma: float) -> SSAValue:
    """exp(−gamma · |x − v|²), where the squared distance is |x|² − 2 x·v + |v|²."""
    squares = node.emit(ReduceSumOp, node.emit(MulOp, rows, rows), axes=[1], keepdims=True)
    own = node.constant(np.square(vectors.astype(np.float64)).sum(axis=1).astype(np.float32), "squares")
    distance = node.emit(SubOp, node.emit(AddOp, squares, own), node.emit(MulOp, products, node.splat(2.0, products)))
    return node.emit(ExpOp, node.emit(MulOp, distance, node.splat(-gamma, distance)))


def _vectors(node: Node, count: int, rows: SSAValue) -> np.ndarray:
    """The support vectors [count, C]; raises `ModelError` if their number or width is wrong."""
    numbers = np.array(node.floats("support_vectors"), np.float32)
    columns = sizes_of(rows)[1]
    width = len(numbers) // max(count, 1)
    if count < 1 or len(numbers) != count * width or (isinstance(columns, int) and columns != width):
        reason = f"{node.kind}: {len(numbers)} numbers are not {count} vectors of {columns} features"
        raise ModelError(reason, node=node.name)
    return numbers.reshape(count, -1)


def _numbers(node: Node, name: str, count: int) -> np.ndarray:
    """A list of `count` floats; raises `ModelError` for another length."""
    found = np.array(node.floats(name), np.float32)
    if len(found) != count:
        raise ModelError(f"{node.kind}: '{name}' has {len(found)} numbers, not {count}", node=node.name)
    return found


@onnx_operator("SVMRegressor", domain=ML)
def svm_regressor(node: Node) -> SSAValue:
    """
    The weighted sum of kernels with support vectors, or without any the product with coefficients, as f32 [N, 1].

    The post-transform is ignored, as in onnxruntime.
    """
    rows = rows_of(node)
    offset = node.splat(node.floats("rho", (0.0,))[0], f32)
    if count := node.int("n_supports", 0):
        weights = node.constant(_numbers(node, "coefficients", count)[:, None], "coefficients")
        found = node.emit(MatMulOp, _kernel(node, rows, _vectors(node, count, rows)), weights)
    else:
        found = _products(node, rows, np.array(node.floats("coefficients"), np.float32)[None])
    found = node.emit(AddOp, found, offset)
    if node.flag("one_class"):
        is_inside = node.cast(node.emit(GreaterOp, found, node.splat(0.0, found)), f32)
        return _affine(node, is_inside, 2.0, -1.0)
    return found


@onnx_operator("SVMClassifier", domain=ML)
def svm_classifier(node: Node) -> tuple[Value, SSAValue]:
    """
    The class with the most votes of pairs of classes, the first one in a tie; and the scores.

    The scores are those of the pairs, or class probabilities if `prob_a` is given. Without support vectors, the model
    is linear.
    """
    rows, classes = rows_of(node), label_count(node)
    counts = node.ints("vectors_per_class", ())
    if not counts:
        return _linear(node, rows, classes)
    if len(counts) != classes or min(counts) < 0:
        raise ModelError(f"{node.kind}: {len(counts)} numbers of vectors for {classes} classes", node=node.name)
    scores = _pairs(node, rows, counts)
    votes = _most_votes(node, scores, classes)
    if node.floats("prob_a", ()):
        found = class_probabilities(node, _sigmoids(node, scores, classes), classes)
        return labels(node, votes), transformed(node, found, node.text("post_transform", "NONE"))
    return labels(node, votes), _raw(node, scores, classes)


def _pairs(node: Node, rows: SSAValue, counts: tuple[int, ...]) -> SSAValue:
    """The scores of pairs of classes, positive if the first class wins, as f32 [N, pairs]; computed by one product."""
    total, classes = sum(counts), len(counts)
    kernels = _kernel(node, rows, _vectors(node, total, rows))
    coefficients = _numbers(node, "coefficients", total * (classes - 1)).reshape(classes - 1, total)
    ends = np.cumsum(counts)
    pairs = list(combinations(range(classes), 2))
    weights = np.zeros((total, len(pairs)), np.float32)
    for column, (first, second) in enumerate(pairs):
        for own, other in ((first, second - 1), (second, first)):
            part = slice(ends[own] - counts[own], ends[own])
            weights[part, column] = coefficients[other, part]
    rho = node.constant(_numbers(node, "rho", len(pairs)), "rho")
    return node.emit(AddOp, node.emit(MatMulOp, kernels, node.constant(weights, "coefficients")), rho)


def _most_votes(node: Node, scores: SSAValue, classes: int) -> SSAValue:
    """The class that wins most pairs; votes are counted by a product with a matrix of gains."""
    pairs = list(combinations(range(classes), 2))
    gains = np.zeros((len(pairs), classes), np.float32)
    base = np.zeros(classes, np.float32)
    for row, (first, second) in enumerate(pairs):
        gains[row, first], gains[row, second] = 1, -1
        base[second] += 1
    wins = node.cast(node.emit(GreaterOp, scores, node.splat(0.0, scores)), f32)
    votes = node.emit(AddOp, node.emit(MatMulOp, wins, node.constant(gains, "votes")), node.constant(base, "votes"))
    return node.cast(node.emit(ArgMaxOp, votes, axis=1, keepdims=False), i64)


def _sigmoids(node: Node, scores: SSAValue, classes: int) -> SSAValue:
    """The probability of the first class of each pair, 1 / (1 + exp(a · score + b)) (Platt scaling)."""
    pairs = classes * (classes - 1) // 2
    factors, offsets = (node.constant(_numbers(node, name, pairs), name) for name in ("prob_a", "prob_b"))
    exponents = node.emit(AddOp, node.emit(MulOp, scores, factors), offsets)
    return node.emit(SigmoidOp, node.emit(NegOp, exponents))


def _raw(node: Node, scores: SSAValue, classes: int) -> SSAValue:
    """The scores of pairs; for two classes, one score per class, whose form depends on the post-transform."""
    word = node.text("post_transform", "NONE")
    if classes != 2:
        return transformed(node, scores, word)
    if word == "LOGISTIC":
        pair = [node.emit(SigmoidOp, node.emit(NegOp, scores)), node.emit(SigmoidOp, scores)]
    elif word == "NONE":
        pair = [node.emit(NegOp, scores), scores]
    else:
        pair = [node.emit(SubOp, node.splat(1.0, scores), scores), scores]
    return node.emit(ConcatOp, pair, axis=1)


def _linear(node: Node, rows: SSAValue, classes: int) -> tuple[Value, SSAValue]:
    """
    Classify by products with one vector of coefficients for each class, ignoring the kernel.

    As in onnxruntime, the second of two classes is chosen if any score is above 0, or at least 0.5 if no coefficient
    is negative.
    """
    numbers = np.array(node.floats("coefficients"), np.float32)
    if len(numbers) % classes:
        raise ModelError(f"{node.kind}: {len(numbers)} coefficients for {classes} classes", node=node.name)
    offset = node.splat(node.floats("rho", (0.0,))[0], f32)
    scores = node.emit(AddOp, _products(node, rows, numbers.reshape(classes, -1)), offset)
    index = node.cast(node.emit(ArgMaxOp, scores, axis=1, keepdims=False), i64)
    if classes == 2:
        largest = node.emit(ReduceMaxOp, scores, axes=[1], keepdims=False)
        if np.all(numbers >= 0):
            is_second = node.emit(GreaterOrEqualOp, largest, node.splat(0.5, largest))
        else:
            is_second = node.emit(GreaterOp, largest, node.splat(0.0, largest))
        index = node.emit(WhereOp, is_second, node.splat(1, index), index)
    return labels(node, index), transformed(node, scores, node.text("post_transform", "NONE"))
