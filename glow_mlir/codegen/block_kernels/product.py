"""Products by blocks of threads: tiles in shared memory, and matrix instructions where the generation has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glow_mlir.codegen.block_kernels.product_tile import THREADS, BlockProduct
from glow_mlir.codegen.block_kernels.product_view import ProductView, view_of
from glow_mlir.codegen.block_kernels.tables import kernel
from glow_mlir.codegen.builder.types import bf16, f16, f32, i8
from glow_mlir.codegen.matrix_instructions import TF32, MatrixInstruction, generation_of, matrix_instruction
from glow_mlir.codegen.selection.kernel import Buffer, Choice, Kernel, KernelCall, Tiles, tiles_of
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import signless
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.target import Target

COPIES = 80
"""The first generation that copies from global to shared memory without registers in between."""

SPLITS = "splits"
"""The name of the tile that gives the number of splits of the depth; each split has its own accumulators."""

MAX_SPLITS = 16

MIN_STAGES = 4
"""The minimum number of stages of a split."""

WANTED_BLOCKS = 128
"""Roughly the number of blocks that keep a device busy: with fewer tiles, the depth is split."""

TF32_TILES = "tf32"
"""The name of the tile that lets products of f32 use only 10 bits of each mantissa."""

ELEMENTS = (f32, f16, bf16, i8)
"""The element types, without signs, whose products blocks compute."""


@kernel("block-product")
class BlockProductKernel(Kernel[ConvOp | MatMulOp]):
    """
    Matrix products and convolutions with one group; each block computes a tile of the result.

    Rows and columns of the tile pass through shared memory, in accesses of 16 bytes where the operands allow it.
    """

    name = "block-product"
    NAMED_BY_INSTRUCTION = True
    AXES = ("tiles", "sums")
    EPILOGUE = True
    STRIDED_INNER = True
    SUMMING = (TF32_TILES, SPLITS)

    def accepts(self, op: ConvOp | MatMulOp) -> bool:
        view = view_of(op)
        return view is not None and signless(view.element) in ELEMENTS

    def choices(self, op: ConvOp | MatMulOp, target: Target) -> Mapping[str, Choice]:
        has_choice = _view(op).element == f32 and generation_of(target) >= TF32.generation
        splits = {SPLITS: Choice(range(1, MAX_SPLITS + 1))}
        return {**splits, TF32_TILES: Choice(range(2))} if has_choice else splits

    def candidates(self, op: ConvOp | MatMulOp, storage: Storage, target: Target) -> Sequence[Tiles]:
        if not isinstance(op, Instruction):
            return ({},)
        view = _view(op)
        by_depth = BlockProduct.stages(view) // MIN_STAGES
        splits = min(WANTED_BLOCKS // BlockProduct.tiles(view), by_depth, MAX_SPLITS)
        return ({SPLITS: splits}, {}) if splits > 1 else ({},)

    def scratch(self, op: ConvOp | MatMulOp, target: Target) -> Sequence[Buffer]:
        view, splits = _view(op), _splits(op)
        return [((4 * splits * BlockProduct.quads(view),), signless(view.signature.accumulator))] if splits > 1 else []

    def cuts(self, op: ConvOp | MatMulOp, target: Target) -> Mapping[str, int]:
        view, splits = _view(op), _splits(op)
        tiles = {"tiles": BlockProduct.tiles(view) * splits}
        return {**tiles, "sums": BlockProduct.quads(view)} if splits > 1 else tiles

    def threads(self, op: ConvOp | MatMulOp, axis: str, target: Target) -> int:
        return 1 if axis == "sums" else THREADS

    def emit(self, call: KernelCall[ConvOp | MatMulOp]) -> None:
        view = _view(call.op)
        copies = generation_of(call.target) >= COPIES
        product = BlockProduct(call, view, _instruction(call.op, view, call.target), copies, _splits(call.op))
        if call.axis == "sums":
            product.emit_accumulators()
        else:
            product.emit()


def _view(op: ConvOp | MatMulOp) -> ProductView:
    """The view of an accepted operation."""
    view = view_of(op)
    assert view is not None
    return view


def _splits(op: ConvOp | MatMulOp) -> int:
    """The number of splits of the depth; each split has its own accumulators."""
    return tiles_of(op).get(SPLITS, 1)


def _instruction(op: ConvOp | MatMulOp, view: ProductView, target: Target) -> MatrixInstruction | None:
    """The matrix instruction that computes an operation; `None` where threads multiply without one."""
    if view.element == f32:
        return TF32 if tiles_of(op).get(TF32_TILES) else None
    return matrix_instruction(view.signature.left, view.signature.right, generation_of(target))
