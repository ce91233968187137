"""What kernels that multiply by Strassen's algorithm have in common: blocks, scratch, and how they are cut."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypeVar
from xdsl.ir import Operation

from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.kernels.gemm import product_cut
from glow_mlir.codegen.kernels.strassen import (
    Halves,
    Sizes,
    strassen_is_faster,
    strassen_tiles,
    upper_rows,
)
from glow_mlir.codegen.kernels.tiles import tile_for
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
"""The operator whose products are computed."""


class StrassenKernel(Kernel[ProductT]):
    """
    A product that is cut along its rows, each part with sums of its own; or along its columns, once all sums are there.

    Which rows are summed with which does not depend on parts, and they are of one sample (`samples`): what a sample of
    a batch has does not change the results of the others.
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
        """Whether each of so many items, into which the rows of an instruction split, is known to be of one sample."""
        if not isinstance(op, Instruction):
            return True  # Operators do not say it yet.
        samples = op.properties.get("samples")
        return samples is not None and items % integer(samples) == 0

    def candidates(self, op: ProductT, storage: Storage, target: Target) -> Sequence[Tiles]:
        if not self.is_constant(op, storage):
            return ()
        sizes = self.sizes(op)
        found = strassen_tiles(target, f32, sizes)
        # All threads read the sums of all blocks where each has some of the columns.
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
        """The packed form of the right operand `[K, N]`, or `[N, …, K]` where it is stored transposed."""
        panel, sizes = tile_for(target, f32).panel, self.sizes(op)
        if sizes.depth % 2 or sizes.columns % (2 * panel):
            return {}
        return {name: PackedForm(strassen_panels(plain, panel, transposed=transposed), f32)}

    def halves(self, op: ProductT, target: Target) -> Halves:
        """How the product is cut into blocks."""
        return Halves.of(target, f32, self.sizes(op), tiles_of(op))

    def choices(self, op: ProductT, target: Target) -> Mapping[str, Choice]:
        sizes = self.sizes(op)
        item, whole = sizes.rows, min(sizes.rows, 2 * tile_for(target, f32).rows)
        several = tiles_of(op).get("rows", 0) > item
        rows = range(2 * item, sizes.all_rows + 1, item) if several else range(whole, item + 1)
        # Sums that all threads read are those of all rows.
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
        """What `emit_strassen` is told of the part of a call."""
        return {
            "share": call.share("rows"),
            "sums": call.share("sums") if call.runs("rows", "sums") else None,
            "pairs": call.share("columns") if call.runs("rows", "columns") else None,
        }


def _cut(tiles: Tiles, sizes: Sizes, target: Target) -> tuple[str, int]:
    """The axis to cut along, and its steps: of the rows of half a block, or of half the columns."""
    half, tile = upper_rows(tiles["rows"], sizes.rows), tile_for(target, f32)
    return product_cut(half, -(-half // tile.rows), sizes.columns // 2, tile, target)
