"""onnxruntime's mixtures of experts with quantized weights."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.constants.sub_byte_values import unpack_sub_bytes
from glow_mlir.dialects.glow_high.blockwise import BlockwiseMatMulOp
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.experts import Routing, mixture
from glow_mlir.frontends.builder.slices import part_of
from glow_mlir.frontends.onnx.microsoft.experts import activated, mixed
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.frontends.onnx.operators.blockwise import ROUNDED, fault_of_blocks
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.dataclass import dataclass

FIRST, SECOND, THIRD = 2, 5, 8
"""Positions of the quantized values of weights; their scales and biases follow."""

ZERO_POINTS = {FIRST: 11, SECOND: 12, THIRD: 13}
"""Position of quantized values → position of their zero points."""

BITS = {FIRST: "fc1_expert_weight_bits", SECOND: "fc2_expert_weight_bits", THIRD: "fc3_expert_weight_bits"}
"""Position of quantized values → the attribute with their number of bits; the default is `expert_weight_bits`."""

SHARES = 14
"""The position of the experts' shares, if the scores only choose experts."""

LONGEST = 128
"""The largest block into which rows with a single scale are split."""


@onnx_operator("QMoE", domain=ONNXRUNTIME)
def qmoe(node: Node) -> SSAValue:
    """
    A mixture whose weights are integers in blocks, each with a scale and an optional zero point.

    Without shares, the shares of the chosen experts are the softmax of their scores, as in onnxruntime on CPUs.
    """
    if (kind := node.text("quant_type", "int")) != "int":
        raise node.unsupported(f"weights of the kind '{kind}' are not supported, only integers")
    if node.int("weights_prepacked", -1) > 0:
        raise node.unsupported("weights packed for an onnxruntime kernel are not supported")
    positions = [position for position in (FIRST, SECOND, THIRD) if node.optional(position) is not None]
    products = {position: _Product.of(node, position) for position in positions}
    for position in (FIRST, SECOND):
        if position not in products:
            raise ModelError(f"{node.kind} has no operand {position}", node=node.name)

    def expert(number: int, rows: SSAValue) -> SSAValue:
        rows = node.cast(rows, f32)
        further = products[THIRD].emit(node, number, rows) if THIRD in products else None
        inner = activated(node, products[FIRST].emit(node, number, rows), further)
        return products[SECOND].emit(node, number, inner)

    def all_results(rows: SSAValue, routing: Routing, width: int) -> SSAValue:
        return mixture(node, rows, routing, expert, width)

    return mixed(node, all_results, len(products[FIRST].quantized), node.optional(SHARES), is_normalized=True)


@dataclass(frozen=True)
class _Product:
    """The weights of one of the products, for all experts."""

    quantized: np.ndarray
    """[experts, columns, bytes]"""
    scales: np.ndarray
    """[experts, columns, blocks]"""
    zero_points: np.ndarray | None
    """[experts, columns, blocks], one a byte."""
    bias: SSAValue | None
    bits: int
    block: int

    @staticmethod
    def of(node: Node, position: int) -> _Product:
        """The weights whose quantized values are the operand at a position."""
        bits = node.int(BITS[position], node.int("expert_weight_bits", 4))
        for index, ranks in ((position, (3,)), (position + 1, (2, 3)), (position + 2, (2,))):
            node.check_rank(index, ranks, "weights are [experts, columns, bytes], scales [experts, columns, blocks]")
        quantized, scales = node.content(position, "the weights"), node.content(position + 1, "the scales")
        experts, columns, width = quantized.shape
        depth, given = width * 8 // max(bits, 1), node.int("block_size", 0)
        block = given if given > 0 else math.gcd(depth, LONGEST)
        if (reason := fault_of_blocks(bits, max(block, 1))) is not None or quantized.dtype != np.uint8:
            raise node.unsupported(reason or f"weights of {quantized.dtype} are not supported")
        blocks = -(-depth // block)
        scales = scales[..., None] if scales.ndim == 2 else scales
        expected = (experts, columns, blocks if given > 0 else 1)
        if scales.shape != expected:
            raise ModelError(f"{node.kind}: scales {scales.shape} are not {expected}", node=node.name)
        points = _zero_points(node, ZERO_POINTS[position], expected, bits)
        if given <= 0:
            scales = np.repeat(scales, blocks, 2)
            points = None if points is None else np.repeat(points, blocks, 2)
        return _Product(quantized, scales, points, node.optional(position + 2), bits, block)

    def emit(self, node: Node, number: int, rows: SSAValue) -> SSAValue:
        """The product of rows and the weights of an expert."""
        arrays = [self.quantized, self.scales, *([] if self.zero_points is None else [self.zero_points])]
        operands: list[SSAValue | None] = [node.constant(np.ascontiguousarray(array[number])) for array in arrays]
        operands += [None] * (4 - len(operands))
        bias = None if self.bias is None else node.cast(part_of(node, self.bias, number), f32)
        left_bits = 8 * (node.int("accuracy_level", 0) >= ROUNDED)
        widths = {"bits": self.bits, "block": self.block}
        return node.emit(BlockwiseMatMulOp, rows, *operands, bias, **widths, left_bits=left_bits)


def _zero_points(node: Node, position: int, shape: tuple[int, ...], bits: int) -> np.ndarray | None:
    """Zero points of blocks, one a byte; they are unpacked along a row, or along columns with a single block each."""
    if node.optional(position) is None:
        return None
    node.check_rank(position, (2, 3), "zero points must be bytes, like quantized values")
    packed = node.content(position, "the zero points")
    experts, columns, blocks = shape
    count = columns if packed.ndim == 2 else blocks
    leading = (experts,) if packed.ndim == 2 else (experts, columns)
    if packed.shape != (*leading, -(-count * bits // 8)) or packed.dtype != np.uint8:
        raise ModelError(f"{node.kind}: zero points {packed.shape} do not fit scales {shape}", node=node.name)
    found = unpack_sub_bytes(packed, bits)[..., :count]
    return np.ascontiguousarray(found.reshape(shape))
