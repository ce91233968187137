"""The common part of kernels that use Strassen's algorithm: blocks, scratch, and how work is divided."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypeVar
from xdsl.ir import Operation

from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.kernels.products.gemm import product_cut
from glow_mlir.codegen.kernels.products.strassen import (
    Halves,
    Sizes,
    strassen_is_faster,
    strassen_tiles,
    upper_rows,
)
from glow_mlir.codegen.kernels.products.tiles import tile_for
from glow_mlir.codegen.selection.kernel import YES_OR_NO, Buffer, Choice, Kernel, KernelCall, Tiles, tiles_of
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.codegen.selection.partitions import partitions_of
from glow_mlir.constants.layouts import strassen_panels
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.target import Target

ProductT = TypeVar("ProductT", bound=Operation, default=Any)
"""The operator whose product a kernel computes."""


class StrassenKernel(Kernel[ProductT]):
    """
    A product that is divided among threads along its rows, each task with its own sums; or along its columns, after a
    phase that computes all sums.

    The pairs of rows that are summed do not depend on the number of threads, and belong to one sample (`samples`): the
    values of a sample do not change the results of other samples of the batch.
    """

    LEAN = False
    STRICT = False
    ONLY_PACKED = True
    EPILOGUE = True
    SUMMING = ("rows",)
    AXES = ("rows", "sums", "columns")

    @abstractmethod
    def sizes(self, op: ProductT) -> Sizes:
        """The sizes of the product, whether its right operand is packed or not."""

    @abstractmethod
    def is_constant(self, op: ProductT, storage: Storage) -> bool:
        """Whether the right operand is known, so that it can be packed."""

    @staticmethod
    def knows_samples(op: Operation, items: int) -> bool:
        """Whether each of `items` items, into which the rows are divided, is known to belong to one sample."""
        if not isinstance(op, Instruction):
            return True  # Operators do not have this property.
        samples = op.properties.get("samples")
        return samples is not None and items % integer(samples) == 0

    def candidates(self, op: ProductT, storage: Storage, target: Target) -> Sequence[Tiles]:
        if not self.is_constant(op, storage):
            return ()
        sizes = self.sizes(op)
        found = strassen_tiles(target, f32, sizes)
        # If threads share the columns, all of them read the sums of all blocks.
        shared = target.policy.threads > 1
        return [
            {**tiles, "held": sizes.items * sizes.half}
            if shared and _cut(tiles, sizes, target)[0] == "columns"
            else tiles
            for tiles in found
        ]

    def is_profitable(self, op: ProductT, storage: Storage, target: Target) -> bool:
        return strassen_is_faster(target, f32, self.sizes(op))

    def packed_matrix(
        self, op: ProductT, name: str, plain: Shape, target: Target, transposed: bool
    ) -> Mapping[str, PackedForm]:
        """Return the packed form of the right operand `[K, N]`, or `[N, …, K]` if it is stored transposed."""
        panel, sizes = tile_for(target, f32).panel, self.sizes(op)
        if sizes.depth % 2 or sizes.columns % (2 * panel):
            return {}
        return {name: PackedForm(strassen_panels(plain, panel, transposed=transposed), f32)}

    def halves(self, op: ProductT, target: Target) -> Halves:
        """Return how the product is divided into blocks."""
        return Halves.of(target, f32, self.sizes(op), tiles_of(op))

    def choices(self, op: ProductT, target: Target) -> Mapping[str, Choice]:
        sizes = self.sizes(op)
        item, whole = sizes.rows, min(sizes.rows, 2 * tile_for(target, f32).rows)
        several = tiles_of(op).get("rows", 0) > item
        rows = range(2 * item, sizes.all_rows + 1, item) if several else range(whole, item + 1)
        # If all threads read the sums, those of all rows are kept.
        all_sums = sizes.items * sizes.half
        held = (all_sums,) if "columns" in partitions_of(op) else (0, all_sums)
        return {
            "rows": Choice(rows, needed=True),
            "prefetch": Choice(YES_OR_NO, needed=True),
            "held": Choice(held, needed=0 not in held),
        }

    def scratch(self, op: ProductT, target: Target) -> Sequence[Buffer]:
        return [(shape, f32) for shape in self.halves(op, target).scratch()]

    def cuts(self, op: ProductT, target: Target) -> Mapping[str, int]:
        sizes = self.sizes(op)
        axis, steps = _cut(tiles_of(op), sizes, target)
        return {"rows": steps} if axis == "rows" else {"sums": sizes.items * sizes.half, "columns": steps}

    def private(self, op: ProductT) -> Sequence[int]:
        return (1,) if "columns" in partitions_of(op) else (0, 1)

    def shares(self, call: KernelCall[ProductT]) -> dict[str, Any]:
        """Return the arguments of `emit_strassen` for the share of a call."""
        return {
            "share": call.share("rows"),
            "sums": call.share("sums") if call.runs("rows", "sums") else None,
            "pairs": call.share("columns") if call.runs("rows", "columns") else None,
        }


def _cut(tiles: Tiles, sizes: Sizes, target: Target) -> tuple[str, int]:
    """Return the axis to divide, and its steps: of the rows of half a block, or of half the columns."""
    half, tile = upper_rows(tiles["rows"], sizes.rows), tile_for(target, f32)
    return product_cut(half, -(-half // tile.rows), sizes.columns // 2, tile, target)
