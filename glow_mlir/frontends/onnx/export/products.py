"""Export of matrix products, attention and recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.activation_functions import GATE_FUNCTIONS
from glow_mlir.dialects.glow_high.attention import AttentionOp, causal_mask
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.einsum import EinsumOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.glow_high.recurrent import GruOp, LstmOp, RnnOp
from glow_mlir.dialects.properties import flag, floats, number, size, text
from glow_mlir.dialects.shapes import Shape, element_of, rank_of, shape_of
from glow_mlir.dialects.sizes import static
from glow_mlir.frontends.onnx.export.quantized_products import product
from glow_mlir.frontends.onnx.export.writer import Writer
from glow_mlir.frontends.onnx.operators.operator_map import ATTRIBUTE_MAPS
from glow_mlir.ir.registry import onnx_export


def _swapped(rank: int) -> Shape:
    return (*range(rank - 2), rank - 1, rank - 2)


def _factor(writer: Writer, value: SSAValue, transpose: bool) -> str:
    return writer.transposed(value, _swapped(rank_of(value))) if transpose else writer.name(value)


@onnx_export(MatMulOp)
def matmul(writer: Writer, op: MatMulOp) -> str:
    """A MatMul; transposes are nodes, and the bias is added."""
    left = _factor(writer, op.left, flag(op.transpose_left))
    right = _factor(writer, op.right, flag(op.transpose_right))
    result = product(writer, op, "MatMul", left, right)
    return result if op.bias is None else writer.emit("Add", result, op.bias)


@onnx_export(FullyConnectedOp)
def fully_connected(writer: Writer, op: FullyConnectedOp) -> str:
    """A product with a bias."""
    if element_of(op.result) == element_of(op.input):
        return writer.emit("Gemm", op.input, op.weights, op.bias)
    result = product(writer, op, "MatMul", writer.name(op.input), writer.name(op.weights))
    return writer.emit("Add", result, op.bias)


@onnx_export(EinsumOp)
def einsum(writer: Writer, op: EinsumOp) -> str:
    """Sums of products over labelled axes."""
    return writer.emit("Einsum", *op.terms, equation=text(op.equation))


@onnx_export(AttentionOp)
def attention(writer: Writer, op: AttentionOp) -> str:
    """Two products with a softmax between them, because the opset has no operator for attention."""
    scores = writer.emit("MatMul", op.query, writer.transposed(op.key, _swapped(rank_of(op.key))))
    if number(op.scale) != 1:
        scores = writer.emit("Mul", scores, writer.like(number(op.scale), op.query))
    if op.mask is not None:
        scores = writer.emit("Add", scores, op.mask)
    if flag(op.causal):
        dtype = numpy_dtype(element_of(op.query))
        queries, keys, past = static((*op.scores_shape()[-2:], size(op.past)))
        hidden = causal_mask(queries, keys, past, dtype)
        scores = writer.emit("Add", scores, writer.constant(hidden, dtype))
    return writer.emit("MatMul", writer.emit("Softmax", scores, axis=-1), op.value)


# ---- recurrent layers

LAYERS: dict[type[HighOp], str] = {LstmOp: "LSTM", GruOp: "GRU", RnnOp: "RNN"}
"""Operator → ONNX's name."""


def _gate_functions(op: Any) -> dict[str, Any]:
    """The names of activation functions, and their parameters, listed only for functions that have them."""
    names = [text(item) for item in op.activations]
    found: dict[str, Any] = {"activations": ["".join(part.title() for part in name.split("_")) for name in names]}
    for given, field, attribute in ((op.alphas, "alpha", "activation_alpha"), (op.betas, "beta", "activation_beta")):
        defaults = [getattr(GATE_FUNCTIONS[name], field) for name in names]
        used = floats(given) or [default or 0.0 for default in defaults]
        listed = [value for value, default in zip(used, defaults, strict=True) if default is not None]
        found[attribute] = listed or None
    return found


def _layer(kind: str) -> Callable[[Writer, Any], Sequence[str]]:
    def export(writer: Writer, op: Any) -> Sequence[str]:
        attributes = _gate_functions(op) if op.activations is not None else {}
        operands = [getattr(op, name) for name, _ in op.get_irdl_definition().operands]
        return writer.emit_all(
            kind,
            len(op.results),
            *operands,
            hidden_size=shape_of(op.recurrence)[-1],
            clip=float(number(op.clip)) or None,
            **ATTRIBUTE_MAPS[kind].export_from(op),
            **attributes,
        )

    return export


for _operator, _kind in LAYERS.items():
    onnx_export(_operator)(_layer(_kind))
