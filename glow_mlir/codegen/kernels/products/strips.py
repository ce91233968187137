"""Rows of a product as strips, the rows of a tile register: pixels that are evenly spaced in the input."""

from __future__ import annotations

from glow_mlir.codegen.builder.amx import MAX_ROWS
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Index
from glow_mlir.codegen.kernels.products.output_pixels import Offsets, Pixels
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Strip:
    """
    The rows of a register: `source` is the input offset of its first pixel. Its first `skipped` rows belong to the
    strip before; the next `count` rows are its own. `target` has the offsets of the first of these in output and extra
    operands.

    `position` is the index of the first own row in its line, if strips continue from line to line.
    """

    source: Index
    skipped: Index
    count: Index
    target: Offsets
    position: Index


@dataclass(frozen=True)
class Strips:
    """
    The pixels of an image of known sizes as `lines` of `length` pixels, each divided into strips of `rows`.

    The last strip of a line overlaps the one before it, so that all have the same number of rows. If the lines of an
    image are treated as a single one, they are `pitch` input pixels apart. Only the first `stored` of these are pixels
    of the output: results for the border between two lines are not stored.
    """

    pixels: Pixels
    lines: int
    length: int
    rows: int
    pitch: int = 0
    stored: int = 0

    @staticmethod
    def of(pixels: Pixels) -> Strips:
        """Return the way with the fewest strips: pixels as one line, lines with borders as one, or single lines."""
        width, height, step, line = (_number(n) for n in (pixels.width, pixels.height, pixels.step_in, pixels.line_in))
        if pixels.uniform:
            return Strips(pixels, 1, height * width, _even(height * width))
        ways = [Strips(pixels, height, width, _even(width))]
        if step and line % step == 0:
            pitch = line // step
            length = (height - 1) * pitch + width
            ways.append(Strips(pixels, 1, length, _even(length), pitch, width))
        return min(ways, key=lambda way: way.count)

    @property
    def per_line(self) -> int:
        """The number of strips of a line."""
        return -(-self.length // self.rows)

    @property
    def count(self) -> int:
        """The number of strips."""
        return self.lines * self.per_line

    def at(self, b: Builder, number: Index) -> Strip:
        """Return a strip by its number."""
        line = number // self.per_line if self.lines > 1 else 0
        first = number % self.per_line * self.rows if self.per_line > 1 else 0
        start, skipped, count = first, 0, self.rows
        if self.length % self.rows:
            start = b.min(b.index(first), self.length - self.rows)
            skipped = first - start
            count = b.min(self.length - b.index(first), self.rows)
        pixels = self.pixels
        source = start * pixels.step_in + line * pixels.line_in
        position = first
        if self.pitch:
            line, position = first // self.pitch, first % self.pitch
        _, target = pixels.at(line, position)
        return Strip(source, skipped, count, target, position)

    @property
    def jumps(self) -> Offsets:
        """The steps from the end of a line, with its border, to the next line, in output and extra operands."""
        steps = zip(self.pixels.line_out, self.pixels.step_out, strict=True)
        return tuple(line - (self.pitch - 1) * step for line, step in steps)


def row_strips(rows: int, step_in: int = 1, step_out: Offsets = (1,)) -> Strips:
    """Return the rows of a matrix as strips; steps are those between rows of input, output and extra operands."""
    return Strips.of(Pixels(rows, 1, step_in, step_out, 0, (0,) * len(step_out)))


def _even(length: int) -> int:
    """Return the rows of strips that divide a line evenly."""
    return max(1, -(-length // max(1, -(-length // MAX_ROWS))))


def _number(size: Index) -> int:
    """Return a size that has to be known."""
    assert isinstance(size, int), "strips need images of known sizes"
    return size
