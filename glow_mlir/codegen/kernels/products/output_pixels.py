"""The output pixels of a convolution as rows of a matrix product: their order and offsets."""

from __future__ import annotations

import dataclasses

from glow_mlir.codegen.builder.value import Index
from glow_mlir.codegen.kernels.products.tiles import Tile, balanced
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import are_numbers

Offsets = tuple[Index, ...]
"""An offset in the output, then one in each extra operand of the epilogue."""


@dataclass(frozen=True)
class Pixels:
    """The output pixels of one image: extents, and steps from pixel to pixel and from line to line."""

    width: Index
    height: Index
    step_in: Index
    step_out: Offsets
    line_in: Index
    line_out: Offsets

    @property
    def uniform(self) -> bool:
        """Whether all pixels are evenly spaced, as if in one line."""
        numbers = (self.width, self.height, self.step_in, *self.step_out, self.line_in, *self.line_out)
        if self.height == 1:
            return True
        if not are_numbers(numbers):
            return False
        lines = zip((self.line_in, *self.line_out), (self.step_in, *self.step_out), strict=True)
        return all(line == self.width * step for line, step in lines)

    def go_by_lines(self, tile: Tile) -> bool:
        """Whether each line is cut into tiles of its own: these need enough rows to hide the latency of sums."""
        min_rows = 1 if tile.rows == 1 else tile.min_rows
        return isinstance(self.width, int) and balanced(self.width, tile.rows)[-1][1] >= min_rows

    def whole_rows(self, image_lines: int | None, tile: Tile) -> Index:
        """Return the rows that are cut into tiles: those of a line, or of an image, which may have `image_lines`."""
        image = self if image_lines is None else dataclasses.replace(self, height=image_lines)
        lines = not image.uniform and image.go_by_lines(tile)
        return image.width if lines else image.height * image.width

    def at(self, line: Index, row: Index) -> tuple[Index, Offsets]:
        """Return the offsets of a pixel: in the input, and in output and extra operands."""
        steps = zip(self.line_out, self.step_out, strict=True)
        return row * self.step_in + line * self.line_in, tuple(row * step + line * skip for skip, step in steps)
