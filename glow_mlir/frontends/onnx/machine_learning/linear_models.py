"""The linear models of ai.onnx.ml."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import SigmoidOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, GreaterOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import NegOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.reductions import ArgMaxOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.machine_learning.encoders import ML
from glow_mlir.frontends.onnx.machine_learning.labels import label_count, labels
from glow_mlir.frontends.onnx.machine_learning.post_transforms import transformed
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import Value
from glow_mlir.ir.registry import onnx_operator


def rows_of(node: Node) -> SSAValue:
    """The operand as f32 [N, C]; a vector is one row."""
    node.check_rank(0, (1, 2), "a matrix, or one row")
    value = node.cast(node.input(), f32)
    return node.emit(ReshapeOp, value, shape=(1, *sizes_of(value))) if rank_of(value) == 1 else value


def regression(node: Node, scores: SSAValue) -> SSAValue:
    """Scores after the post-transform; for a single target only PROBIT is applied, as in onnxruntime."""
    word = node.text("post_transform", "NONE")
    is_single = sizes_of(scores)[1] == 1
    return scores if is_single and word in ("SOFTMAX", "SOFTMAX_ZERO", "LOGISTIC") else transformed(node, scores, word)


def _scores(node: Node, count: int) -> SSAValue:
    """The products of rows with `count` vectors of coefficients, plus intercepts."""
    rows = rows_of(node)
    columns = sizes_of(rows)[1]
    coefficients = np.array(node.floats("coefficients"), np.float32)
    if not isinstance(columns, int):
        columns = len(coefficients) // max(1, count)
    if len(coefficients) != (used := columns * count):
        reason = f"{len(coefficients)} coefficients for {count} times {columns} features"
        if len(coefficients) < used:
            raise ModelError(f"{node.kind}: {reason}", node=node.name)
        node.doubt(reason, f"the first {used} are taken", "the input has fewer columns than the model was fitted with")
    weights = np.ascontiguousarray(coefficients[:used].reshape(count, columns).T)
    found = node.emit(MatMulOp, rows, node.constant(weights, "coefficients"))
    intercepts = np.array(node.floats("intercepts", ()), np.float32)
    if not len(intercepts):
        return found
    if len(intercepts) != count:
        raise ModelError(f"{node.kind}: {len(intercepts)} intercepts for {count} results", node=node.name)
    return node.emit(AddOp, found, node.constant(intercepts, "intercepts"))


@onnx_operator("LinearRegressor", domain=ML)
def linear_regressor(node: Node) -> SSAValue:
    """X · coefficientsᵀ + intercepts as f32 [N, targets]."""
    return regression(node, _scores(node, node.int("targets", 1)))


@onnx_operator("LinearClassifier", domain=ML)
def linear_classifier(node: Node) -> tuple[Value, SSAValue]:
    """The class with the highest score, and the scores after the post-transform; two classes may have one score."""
    classes = label_count(node)
    columns = sizes_of(rows_of(node))[1]
    given = len(node.floats("coefficients"))
    if classes == 2 and (given == columns or len(node.floats("intercepts", ())) == 1):
        return _two_classes(node, _scores(node, 1))
    scores = _scores(node, classes)
    index = node.cast(node.emit(ArgMaxOp, scores, axis=1, keepdims=False), i64)
    return labels(node, index), transformed(node, scores, node.text("post_transform", "NONE"))


def _two_classes(node: Node, score: SSAValue) -> tuple[Value, SSAValue]:
    """
    Classify by the score of the second of two classes: it is chosen if its score is positive.

    The first class has the score 1 − s, or for LOGISTIC sigmoid(−s).
    """
    is_second = node.cast(node.emit(GreaterOp, score, node.splat(0.0, score)), i64)
    index = node.emit(ReshapeOp, is_second, shape=(sizes_of(score)[0],))
    word = node.text("post_transform", "NONE")
    if word == "LOGISTIC":
        pair = [node.emit(SigmoidOp, node.emit(NegOp, score)), node.emit(SigmoidOp, score)]
    else:
        pair = [node.emit(SubOp, node.splat(1.0, score), score), score]
    scores = node.emit(ConcatOp, pair, axis=1)
    return labels(node, index), transformed(node, scores, word) if word == "PROBIT" else scores
