"""Products by blocks of threads: tiles in shared memory, and matrix instructions where the generation has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glow_mlir.codegen.block_kernels.product_tile import THREADS, BlockProduct
from glow_mlir.codegen.block_kernels.product_view import ProductView, view_of
from glow_mlir.codegen.block_kernels.tables import kernel
from glow_mlir.codegen.builder.types import bf16, f16, f32, i8
from glow_mlir.codegen.matrix_instructions import TF32, MatrixInstruction, generation_of, matrix_instruction
from glow_mlir.codegen.selection.kernel import Choice, Kernel, KernelCall, Tiles, tiles_of
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import signless
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.target import Target

COPIES = 80
"""The generation from which on memory is copied to shared memory without registers between."""

TF32_TILES = "tf32"
"""The name of the tile that lets products of f32 see 10 bits behind the point."""

ELEMENTS = (f32, f16, bf16, i8)
"""The types of elements, without their signs, whose products blocks compute."""


@kernel("block-product")
class BlockProductKernel(Kernel[ConvOp | MatMulOp]):
    """
    Matrix products and convolutions in one group, a tile of the result in each block.

    Rows and columns of the tile come through shared memory, in accesses of 16 bytes where operands allow that.
    """

    name = "block-product"
    NAMED_BY_INSTRUCTION = True
    AXES = ("tiles",)
    EPILOGUE = True
    STRIDED_INNER = True
    SUMMING = (TF32_TILES,)

    def accepts(self, op: ConvOp | MatMulOp) -> bool:
        view = view_of(op)
        return view is not None and signless(view.element) in ELEMENTS

    def choices(self, op: ConvOp | MatMulOp, target: Target) -> Mapping[str, Choice]:
        return (
            {TF32_TILES: Choice(range(2))}
            if _view(op).element == f32 and generation_of(target) >= TF32.generation
            else {}
        )

    def candidates(self, op: ConvOp | MatMulOp, storage: Storage, target: Target) -> Sequence[Tiles]:
        return ({},)

    def cuts(self, op: ConvOp | MatMulOp, target: Target) -> Mapping[str, int]:
        return {"tiles": BlockProduct.tiles(_view(op))}

    def threads(self, op: ConvOp | MatMulOp, axis: str, target: Target) -> int:
        return THREADS

    def emit(self, call: KernelCall[ConvOp | MatMulOp]) -> None:
        view = _view(call.op)
        BlockProduct(call, view, _instruction(call.op, view, call.target), generation_of(call.target) >= COPIES).emit()


def _view(op: ConvOp | MatMulOp) -> ProductView:
    """The view of what is accepted."""
    view = view_of(op)
    assert view is not None
    return view


def _instruction(op: ConvOp | MatMulOp, view: ProductView, target: Target) -> MatrixInstruction | None:
    """The matrix instruction of an instruction; `None` where each thread multiplies by itself."""
    if view.element == f32:
        return TF32 if tiles_of(op).get(TF32_TILES) else None
    return matrix_instruction(view.signature.left, view.signature.right, generation_of(target))
