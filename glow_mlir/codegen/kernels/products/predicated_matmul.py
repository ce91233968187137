"""The kernel of products with rows that are never used: tiles of only such rows are skipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from glow_mlir.codegen.builder.nests import Index, linear
from glow_mlir.codegen.builder.types import i1
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.products.gemm import TILE_PRODUCTS
from glow_mlir.codegen.kernels.products.matmul import ProductKernel
from glow_mlir.codegen.selection.kernel import Choice, KernelCall, Tiles
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.linear import PredicatedMatMulOp
from glow_mlir.dialects.target import Target


@kernel("predicated-matmul")
class PredicatedMatMulKernel(ProductKernel[PredicatedMatMulOp]):
    """
    Batched products in vectors, as `matmul` computes them, except for tiles of rows that are never used.

    It applies no epilogue, which may read all rows.
    """

    name = "predicated-matmul"

    def candidates(self, op: PredicatedMatMulOp, storage: Storage, target: Target) -> Sequence[Tiles]:
        return [tiles for tiles in super().candidates(op, storage, target) if not tiles.get(TILE_PRODUCTS, 0)]

    def choices(self, op: PredicatedMatMulOp, target: Target) -> Mapping[str, Choice]:
        return {name: choice for name, choice in super().choices(op, target).items() if name != TILE_PRODUCTS}

    def wants(self, call: KernelCall[PredicatedMatMulOp], batch: list[Index]) -> Callable[[Index, int], Value]:
        predicate = call.one("predicate")
        *steps, step = predicate.strides
        # Rows of batches that are multiplied as one matrix are evenly spaced in the predicate as well.
        start = linear(batch, steps) if batch else 0

        def any_of(row: Index, rows: int) -> Value:
            offsets = [(row + number) * step + start for number in range(rows)]
            found = [predicate.pointer.at(offset, i1).load(i1) for offset in offsets]
            total = found[0]
            for other in found[1:]:
                total = total | other
            return total

        return any_of
