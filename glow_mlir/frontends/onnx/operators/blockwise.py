"""
Weights in blocks of sub-byte quantized values: onnxruntime's MatMulNBits, and ONNX's DequantizeLinear with
`block_size`.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import bf16, f8E8M0FNU, f16, f32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.constants.sub_byte_values import DOT_GROUP_BITS, pack_sub_bytes, unpack_sub_bytes
from glow_mlir.dialects.element_types import ELEMENT_TYPES, ui8
from glow_mlir.dialects.glow_high.blockwise import FEWEST, WHOLE_WIDTHS, BlockwiseDequantizeOp, BlockwiseMatMulOp
from glow_mlir.dialects.glow_high.data_movement import PadOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import BitShiftOp, BitwiseAndOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, shape_of, size_of, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import NARROW_FLOATS, NARROW_INTEGERS, POWERS_OF_TWO, is_float_dtype, packed_bits

ROUNDED = 4
"""The lowest `accuracy_level` at which rows are rounded to 8-bit quantized values."""


@onnx_operator("MatMulNBits", domain=ONNXRUNTIME)
def matmul_nbits(node: Node) -> SSAValue:
    """
    A product with weights [N, K] in blocks of quantized values; each row is padded to whole blocks.
    """
    bits, block, columns, depth = (node.int(name, default) for name, default in _SIZES)
    if (reason := fault_of_blocks(bits, block)) is not None:
        raise node.unsupported(reason)
    if node.int("weight_prepacked", 0):
        raise node.unsupported("weights packed for an onnxruntime kernel are not supported")
    blocks = -(-depth // block)
    _check_order(node, depth, block)
    quantized = _reshaped(node, 1, (columns, blocks * block * bits // 8))
    parameters = [_reshaped(node, 2, (columns, blocks)), _zero_points(node, columns, blocks, bits)]
    widths = {"bits": bits, "block": block}
    left, bias = node.cast(node.input(0), f32), node.optional(5)
    added = None if bias is None else node.cast(bias, f32)
    if rank_of(left) == 1:
        left = node.emit(ReshapeOp, left, shape=(1, *sizes_of(left)))
    if sizes_of(left)[-1] != depth:
        raise ModelError(f"{node.kind}: rows have {sizes_of(left)[-1]} elements, and K is {depth}", node=node.name)
    if depth * bits % DOT_GROUP_BITS:
        # Kernels read whole dot groups: the padding of the last block is multiplied by zeros.
        zeros = [0] * (2 * rank_of(left) - 1)
        left = node.emit(PadOp, left, pads=[*zeros, blocks * block - depth])
    else:
        quantized = cut(node, quantized, {1: (0, depth * bits // 8)})
    left_bits = 8 * (node.int("accuracy_level", 0) >= ROUNDED)
    result = node.emit(BlockwiseMatMulOp, left, quantized, *parameters, None, added, **widths, left_bits=left_bits)
    if node.rank(0) == 1:
        result = node.emit(ReshapeOp, result, shape=(columns,))
    return node.cast(result, node.element(0))


_SIZES = (("bits", 4), ("block_size", None), ("N", None), ("K", None))
"""Attributes that are sizes, and their defaults."""


def fault_of_blocks(bits: int, block: int) -> str | None:
    """Why `block` quantized values of `bits` bits in a block are not supported; `None` if they are."""
    if bits not in WHOLE_WIDTHS:
        return f"quantized values of {bits} bits are not supported, only of {', '.join(map(str, WHOLE_WIDTHS))}"
    if block < FEWEST or block & (block - 1):
        return f"blocks of {block} values are not supported, only powers of two from {FEWEST}"
    return None


def _check_order(node: Node, depth: int, block: int) -> None:
    """Raise `UnsupportedError` if `g_idx` assigns the elements of a row to blocks in another order."""
    if node.optional(4) is None:
        return
    groups = node.content(4, "the order of groups").reshape(-1)
    if not np.array_equal(groups, np.arange(depth) // block):
        raise node.unsupported("reordered groups (g_idx) are not supported")


def _reshaped(node: Node, position: int, shape: tuple[int, ...]) -> SSAValue:
    """An operand in another shape."""
    value = node.input(position)
    if size_of(value) != shape[0] * shape[1]:
        reason = f"{node.kind}: operand {position} has the shape {shape_of(value)}, which does not fit {shape}"
        raise ModelError(reason, node=node.name, hint="check N, K, bits and block_size")
    return node.emit(ReshapeOp, value, shape=shape)


def _zero_points(node: Node, columns: int, blocks: int, bits: int) -> SSAValue | None:
    """The zero points of blocks, one a byte; the operand may have several in a byte, with rows padded to bytes."""
    value = node.optional(3)
    if value is None or element_of(value) != ui8 or bits == 8:
        return None if value is None else _reshaped(node, 3, (columns, blocks))
    packed = _reshaped(node, 3, (columns, -(-blocks * bits // 8)))
    if (known := node.fold(packed)) is not None:
        return node.constant(np.ascontiguousarray(unpack_sub_bytes(known, bits)[:, :blocks]))
    return cut(node, _unpacked(node, packed, bits), {1: (0, blocks)})


def _unpacked(node: Node, packed: SSAValue, bits: int) -> SSAValue:
    """`unpack_sub_bytes` at run time, for bytes of shape [rows, n]."""
    rows, width = shape_of(packed)
    count = 8 // bits
    column = node.emit(ReshapeOp, packed, shape=(rows, width, 1))
    shifts = node.constant(np.arange(0, 8, bits, dtype=np.uint8))
    moved = node.emit(BitShiftOp, column, shifts, direction="right")
    quantized = node.emit(BitwiseAndOp, moved, node.constant(np.array((1 << bits) - 1, np.uint8)))
    return node.emit(ReshapeOp, quantized, shape=(rows, width * count))


@onnx_operator("GatherBlockQuantized", domain=ONNXRUNTIME)
def gather_block_quantized(node: Node) -> SSAValue:
    """Slices of a dequantized constant table, whose blocks are along the last axis."""
    block = node.int("block_size", 128)
    quantized, scales = node.content(0, "the table"), node.input(2)
    points = None if node.optional(3) is None else node.content(3, "the zero points")
    is_packed = quantized.dtype.name not in NARROW_INTEGERS
    bits = node.int("bits", 4) if is_packed else NARROW_INTEGERS[quantized.dtype.name]
    if (reason := fault_of_blocks(bits, block)) is not None:
        raise node.unsupported(reason)
    axis = normalize_axis(node.int("quantize_axis", 1), quantized.ndim)
    if axis != quantized.ndim - 1 or quantized.dtype.itemsize > 1:
        raise node.unsupported("only integers in blocks along the last axis are supported")
    if is_packed:
        points = None if points is None else unpack_sub_bytes(points, bits)[..., : shape_of(scales)[-1]]
        # The file has the bytes of the operation: they stay there, and the operand may be shared with a product.
        table = Blocks(node.input(0), quantized.shape[-1] * (8 // bits), scales, points, bits, block)
    else:
        table = Blocks.of_integers(quantized, scales, points, block)
    if (reason := table.fault) is not None:
        raise node.unsupported(reason)
    numbers = table.emit(node)
    rows = node.emit(GatherOp, numbers, node.input(1), axis=node.int("gather_axis", 0))
    return node.cast(rows, element_of(node.input(2)))


def numbers_of_blocks(node: Node) -> SSAValue | None:
    """
    The result of a DequantizeLinear of a constant matrix in blocks; `None` for any other DequantizeLinear, and for
    blocks without a kernel.
    """
    block = node.int("block_size", 0)
    quantized, scales, points = (node.known(position) for position in range(3))
    if not block or quantized is None or scales is None or (points is None) != (node.optional(2) is None):
        return None
    if quantized.dtype.name in NARROW_FLOATS and points is not None and not points.astype(np.float32).any():
        points = None
    kind = element_of(node.input(1))
    if quantized.ndim != 2 or quantized.dtype.itemsize > 1 or kind not in (f32, f16, bf16, f8E8M0FNU):
        return None
    # Blocks along the first axis are blocks of the transposed matrix's rows.
    is_turned = normalize_axis(node.int("axis", 1), 2) == 0
    if is_turned:
        quantized, scales, points = quantized.T, scales.T, None if points is None else points.T
    scales = scales.astype(np.float32) if kind == f8E8M0FNU else scales
    is_float = is_float_dtype(quantized.dtype)
    if is_float and (points is not None or quantized.dtype.name == POWERS_OF_TWO):
        return None
    found = (
        Blocks.of_floats(quantized, scales, block) if is_float else Blocks.of_integers(quantized, scales, points, block)
    )
    if found.fault is not None:
        return None
    result = found.emit(node)
    if is_turned:
        result = node.emit(TransposeOp, result, permutation=(1, 0))
    return node.cast(result, f32 if kind == f8E8M0FNU else kind)


@dataclass(frozen=True)
class Blocks:
    """
    Unsigned quantized values with a scale and a zero point for each block along the last axis.

    `packed` has the bytes of `length` values along the last axis, the first of each byte in its lowest bits. Quantized
    floats have their `element` type and no zero points. Scales may be a run-time value.
    """

    packed: np.ndarray | SSAValue
    length: int
    scales: np.ndarray | SSAValue
    zero_points: np.ndarray | None
    bits: int
    block: int
    element: Attribute | None = None

    @staticmethod
    def of_integers(
        quantized: np.ndarray, scales: np.ndarray | SSAValue, zero_points: np.ndarray | None, block: int
    ) -> Blocks:
        """Blocks of signed or unsigned integers; zero points are 0 by default."""
        bits = NARROW_INTEGERS.get(quantized.dtype.name, 8)
        if zero_points is None:
            shape = scales.shape if isinstance(scales, np.ndarray) else shape_of(scales)
            zero_points = np.zeros(shape, quantized.dtype)
        # Signed values become unsigned: half of the range is added.
        half = 0 if quantized.dtype.name.startswith("u") else 1 << bits - 1
        quantized, zero_points = (
            (array.astype(np.int16) + half).astype(np.uint8) for array in (quantized, zero_points)
        )
        return Blocks(pack_sub_bytes(quantized, bits), quantized.shape[-1], scales, zero_points, bits, block)

    @staticmethod
    def of_floats(quantized: np.ndarray, scales: np.ndarray, block: int) -> Blocks:
        """Blocks of floats of 8 or 4 bits."""
        bits = packed_bits(quantized.dtype.name) or 8
        bare = np.ascontiguousarray(quantized).view(np.uint8) & np.uint8((1 << bits) - 1)
        element = ELEMENT_TYPES[quantized.dtype.name]
        return Blocks(pack_sub_bytes(bare, bits), bare.shape[-1], scales, None, bits, block, element)

    @property
    def fault(self) -> str | None:
        """Why these quantized values are not supported; `None` if they are."""
        if (reason := fault_of_blocks(self.bits, self.block)) is not None:
            return reason
        if self.length * self.bits % 8:
            return f"{self.length} values of {self.bits} bits do not fill whole bytes"
        return None

    def emit(self, node: Node) -> SSAValue:
        """Emit the dequantization."""
        half, points = 1 << self.bits - 1, self.zero_points
        given = [self.packed, self.scales]
        given += [] if points is None or (points == half).all() else [points]
        operands = [
            node.constant(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value for value in given
        ]
        return node.emit(BlockwiseDequantizeOp, *operands, bits=self.bits, block=self.block, element=self.element)
