"""What kernels that multiply by Strassen's algorithm have in common: blocks, scratch, and how they are cut."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Operation

from glow_mlir.codegen.kernel import Kernel, KernelCall, add_scratch
from glow_mlir.codegen.kernels.gemm import product_cut
from glow_mlir.codegen.kernels.strassen import Halves
from glow_mlir.codegen.kernels.tiles import tile_for
from glow_mlir.codegen.parts import parts_of
from glow_mlir.codegen.target import Target
from glow_mlir.codegen.types import f32
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.properties import integer


class StrassenKernel(Kernel):
    """
    A product that is cut along its rows, each part with sums of its own; or along its columns, once all sums are there.

    Which rows are summed with which does not depend on parts.
    """

    STRICT = False
    EPILOGUE = True
    AXES = ("rows", "sums", "columns")

    @abstractmethod
    def sizes(self, op: Operation) -> tuple[int, int, int]:
        """Rows, columns and depth of the product, whether its right operand is packed or not."""

    def halves(self, op: Operation, target: Target) -> Halves:
        """How the product is cut into blocks."""
        rows, _, depth = self.sizes(op)
        cut = Halves.of(target, f32, rows, depth)
        tiles = op.properties.get("tiles")
        return replace(cut, held=integer(tiles.data["held"])) if isinstance(tiles, DictionaryAttr) else cut

    def add_halves(self, op: DerivedInstruction, target: Target) -> None:
        """Allocate the scratch of the product; sums of all blocks where all threads read them."""
        rows = self.sizes(op)[0]
        if target.threads > 1 and self._cut(op, target)[0] == "columns":
            op.tiles = DictionaryAttr({"held": to_attribute(rows)})
        for shape in self.halves(op, target).scratch():
            add_scratch(op, shape, f32)

    def cuts(self, op: Instruction, target: Target) -> Mapping[str, int]:
        axis, steps = self._cut(op, target)
        return {"rows": steps} if axis == "rows" else {"sums": self.sizes(op)[0] // 2, "columns": steps}

    def private(self, op: Instruction) -> Sequence[int]:
        return (1,) if "columns" in parts_of(op) else (0, 1)

    def shares(self, call: KernelCall) -> dict[str, Any]:
        """What `emit_strassen` is told of the part of a call."""
        return {
            "share": call.share("rows"),
            "sums": call.share("sums") if call.runs("rows", "sums") else None,
            "pairs": call.share("columns") if call.runs("rows", "columns") else None,
        }

    def _cut(self, op: Operation, target: Target) -> tuple[str, int]:
        """The axis to cut along, and its steps: of the rows of half a block, or of half the columns."""
        half, tile = self.halves(op, target).rows, tile_for(target, f32)
        return product_cut(half, -(-half // tile.rows), self.sizes(op)[1] // 2, tile, target.threads)
