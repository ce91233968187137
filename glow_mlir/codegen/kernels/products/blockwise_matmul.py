"""`blockwise-matmul`: products of rows of f32 and weights that are quantized in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.kernels.products.blockwise_product import BlockwiseProductKernel
from glow_mlir.codegen.kernels.products.blockwise_tile import BlockwiseFloatTile, BlockwiseTile
from glow_mlir.codegen.kernels.products.dot_products import MULTIPLY_ADDS_F32
from glow_mlir.codegen.kernels.products.tiles import Tile, tile_for
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.blockwise import BlockwiseMatMulOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.target import Target


@kernel("blockwise-matmul")
class BlockwiseMatMulKernel(BlockwiseProductKernel[BlockwiseMatMulOp]):
    """Products of rows of f32 and weights that are decoded in registers."""

    name = "blockwise-matmul"
    ROWS: ClassVar[Mapping[str, str]] = {"left": "input"}

    def accepts(self, op: BlockwiseMatMulOp) -> bool:
        return not integer(op.left_bits) and super().accepts(op)

    def tile(self, op: BlockwiseMatMulOp, target: Target) -> Tile:
        return tile_for(target, f32)

    def micro_kernel(self, op: BlockwiseMatMulOp, target: Target) -> BlockwiseTile:
        # Decoding takes longer than adding: several accumulators for few rows would gain nothing.
        tile = self.tile(op, target)
        return BlockwiseFloatTile(MULTIPLY_ADDS_F32, tile, tile.rows, tile.vectors, value_type=op.element)
