"""The output pixels of a convolution as rows of a matrix product: how they are counted, and where each lies."""

from __future__ import annotations

import dataclasses

from glow_mlir.codegen.builder.value import Index
from glow_mlir.codegen.kernels.tiles import Tile, balanced
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import are_numbers

Places = tuple[Index, ...]
"""An offset in the output, then one in each extra operand of the epilogue."""


@dataclass(frozen=True)
class Pixels:
    """The output pixels of one image: extents, and steps from pixel to pixel and from line to line."""

    width: Index
    height: Index
    step_in: Index
    step_out: Places
    line_in: Index
    line_out: Places

    @property
    def uniform(self) -> bool:
        """Whether all pixels follow each other at one step, as if there were one line."""
        numbers = (self.width, self.height, self.step_in, *self.step_out, self.line_in, *self.line_out)
        if self.height == 1:
            return True
        if not are_numbers(numbers):
            return False
        lines = zip((self.line_in, *self.line_out), (self.step_in, *self.step_out), strict=True)
        return all(line == self.width * step for line, step in lines)

    def go_by_lines(self, tile: Tile) -> bool:
        """Whether each line is cut into tiles of its own, which would else wait for the latency of their sums."""
        fewest = 1 if tile.rows == 1 else tile.fewest_rows
        return isinstance(self.width, int) and balanced(self.width, tile.rows)[-1][1] >= fewest

    def whole_rows(self, image_lines: int | None, tile: Tile) -> Index:
        """The rows of the products by which sums are cut: of a line, or of an image, which may have more lines."""
        image = self if image_lines is None else dataclasses.replace(self, height=image_lines)
        lines = not image.uniform and image.go_by_lines(tile)
        return image.width if lines else image.height * image.width

    def at(self, line: Index, row: Index) -> tuple[Index, Places]:
        """The offsets of one pixel: in the input, and in output and extra operands."""
        places = zip(self.line_out, self.step_out, strict=True)
        return row * self.step_in + line * self.line_in, tuple(row * step + line * skip for skip, step in places)
