"""`blockwise-matmul-integer`: products of rows and weights that are both quantized in blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from glow_mlir.codegen.builder.amx import MAX_ROWS
from glow_mlir.codegen.builder.types import f32, i8
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.blockwise_integer_tile import BlockwiseIntegerTile, dot_instruction
from glow_mlir.codegen.kernels.products.blockwise_product import BlockwiseProductKernel
from glow_mlir.codegen.kernels.products.blockwise_strip import COLUMNS, INSTRUCTION, BlockwiseStrip
from glow_mlir.codegen.kernels.products.dot_products import MULTIPLY_ADDS_F32, pair_instruction
from glow_mlir.codegen.kernels.products.gemm import TILE_PRODUCTS
from glow_mlir.codegen.kernels.products.packed_values import BYTE_BITS, PackedValues
from glow_mlir.codegen.kernels.products.tile_products import TILE_INSTRUCTIONS
from glow_mlir.codegen.kernels.products.tiles import Tile, tile_for
from glow_mlir.codegen.selection.kernel import YES_OR_NO, Buffer, Choice, Tiles, tiles_of
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.blockwise import LARGEST, BlockwiseMatMulIntegerOp
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.dialects.shapes import size_along, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.dialects.target import Target

TILE_INSTRUCTION = next(one for one in TILE_INSTRUCTIONS if one.name == INSTRUCTION)

MAX_ACCUMULATOR = (1 << 31) - 1
"""The largest sum of the products of a block."""


@kernel("blockwise-matmul-integer")
class BlockwiseMatMulIntegerKernel(BlockwiseProductKernel[BlockwiseMatMulIntegerOp]):
    """Products of integers, a dot group at a time where a target has an instruction for it."""

    name = "blockwise-matmul-integer"
    ROWS: ClassVar[Mapping[str, str]] = {
        "left": "input",
        "left_low": "low",
        "left_scales": "left_scales",
        "left_sums": "left_sums",
    }

    def accepts(self, op: BlockwiseMatMulIntegerOp) -> bool:
        largest = LARGEST[8 if op.left_low is None else 15]
        fits = integer(op.block) * largest * ((1 << integer(op.bits)) - 1) <= MAX_ACCUMULATOR
        return fits and super().accepts(op)

    def tile(self, op: BlockwiseMatMulIntegerOp, target: Target) -> Tile:
        plain, planes = tile_for(target, f32), 1 if op.left_low is None else 2
        # Each result has an accumulator of f32 and one for each plane; the rest is for weights and a value of a row.
        costs = kernel_costs(target)
        vectors = min(plain.vectors, costs.blockwise_vectors)
        fitting = (target.vector_registers - 2 * vectors - 1) // (vectors * (1 + planes))
        return replace(plain, vectors=vectors, rows=max(1, min(fitting, costs.blockwise_rows)))

    def micro_kernel(self, op: BlockwiseMatMulIntegerOp, target: Target) -> BlockwiseIntegerTile:
        tile, values = self.tile(op, target), PackedValues(integer(op.bits), ints(op.table))
        return BlockwiseIntegerTile(
            MULTIPLY_ADDS_F32,
            tile,
            tile.rows,
            tile.vectors,
            wide=op.left_low is not None,
            instruction=dot_instruction(target),
            pairs=pair_instruction(target, LARGEST[BYTE_BITS], values.largest_byte),
        )

    def strip(self, op: BlockwiseMatMulIntegerOp, target: Target) -> BlockwiseStrip | None:
        whole = self.micro_kernel(op, target)
        if not TILE_INSTRUCTION.is_available(target) or whole.tile.lanes != COLUMNS:
            return None
        return BlockwiseStrip(
            MULTIPLY_ADDS_F32, whole.tile, MAX_ROWS, 1, wide=whole.wide, instruction=whole.instruction
        )

    def candidates(self, op: BlockwiseMatMulIntegerOp, storage: Storage, target: Target) -> Sequence[Tiles]:
        found = super().candidates(op, storage, target)
        rows = math.prod(map(largest, sizes_of(op.result)[:-1]))
        if self.strip(op, target) is None:
            return found
        by_tiles = [{**tiles, TILE_PRODUCTS: 1} for tiles in found]
        pays = rows >= kernel_costs(target).blockwise_strips * MAX_ROWS
        return [*by_tiles, *found] if pays else [*found, *by_tiles]

    def choices(self, op: BlockwiseMatMulIntegerOp, target: Target) -> Mapping[str, Choice]:
        return {} if self.strip(op, target) is None else {TILE_PRODUCTS: Choice(YES_OR_NO)}

    def scratch(self, op: BlockwiseMatMulIntegerOp, target: Target) -> Sequence[Buffer]:
        return [((size_along(op.left, -1), self.tile(op, target).panel), i8)] if _unpacks(op) else ()

    def private(self, op: BlockwiseMatMulIntegerOp) -> Sequence[int]:
        return (0,) if _unpacks(op) else ()


def _unpacks(op: BlockwiseMatMulIntegerOp) -> bool:
    """Whether weights are unpacked to bytes in front of products in tile registers."""
    return bool(tiles_of(op).get(TILE_PRODUCTS, 0)) and integer(op.bits) < BYTE_BITS
