"""Rows of a product as strips, the rows of a tile register: pixels that lie at one step in the input."""

from __future__ import annotations

from glow_mlir.codegen.builder.amx import MAX_ROWS
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Index
from glow_mlir.codegen.kernels.output_pixels import Pixels, Places
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Strip:
    """
    Some rows of a register: its first pixel in the input, how many of its rows come before those that are its own, how
    many these are, and where the first of them is stored.

    `position` is that of the first in its line, where lines run together.
    """

    source: Index
    skipped: Index
    count: Index
    target: Places
    position: Index


@dataclass(frozen=True)
class Strips:
    """
    The pixels of an image, of numbers that Python knows, as `lines` of `length` pixels, each cut into strips of `rows`.

    The last strip of a line reaches back into the one before it, so that all have as many rows. Where the lines of an
    image run together as one, `pitch` pixels of the input lie from one to the next, of which the first `stored` are
    pixels of the output: what is computed of the border between two lines is not stored.
    """

    pixels: Pixels
    lines: int
    length: int
    rows: int
    pitch: int = 0
    stored: int = 0

    @staticmethod
    def of(pixels: Pixels) -> Strips:
        """As few strips as can be: all pixels as one line, lines that run together, or lines by themselves."""
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
        """How many strips a line has."""
        return -(-self.length // self.rows)

    @property
    def count(self) -> int:
        """How many strips there are."""
        return self.lines * self.per_line

    def at(self, b: Builder, number: Index) -> Strip:
        """The strip of a number."""
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
    def jumps(self) -> Places:
        """From the last pixel of a line, its border included, to the first of the next, in output and planes."""
        steps = zip(self.pixels.line_out, self.pixels.step_out, strict=True)
        return tuple(line - (self.pitch - 1) * step for line, step in steps)


def row_strips(rows: int, step_in: int = 1, step_out: Places = (1,)) -> Strips:
    """Rows of a matrix as strips, so many elements apart on either side."""
    return Strips.of(Pixels(rows, 1, step_in, step_out, 0, (0,) * len(step_out)))


def _even(length: int) -> int:
    """Rows of strips that cut a line evenly."""
    return max(1, -(-length // max(1, -(-length // MAX_ROWS))))


def _number(size: Index) -> int:
    """A size that Python knows."""
    assert isinstance(size, int), "strips are cut of images of known sizes"
    return size
