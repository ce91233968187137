"""What goes where in packed forms that only move elements, as `glow_mlir/constants/packing.py` makes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from glow_mlir.codegen.selection.packed_form import Layout, Move
from glow_mlir.dialects.glow_low.memory import contiguous_strides
from glow_mlir.dialects.shapes import Shape


@dataclass(frozen=True)
class Axis:
    """One of the loops over the elements of a box: how many steps, and how far each is, in elements."""

    size: int
    target: int
    source: int


def _move(axes: Sequence[Axis], target: int = 0, source: int | None = 0) -> Move:
    """The box that some axes span from offsets in target and source; without a source, one of zeros."""
    long = [axis for axis in axes if axis.size > 1] or [Axis(1, 1, 1)]
    shape = tuple(axis.size for axis in long)
    read = None if source is None else Layout(tuple(axis.source for axis in long), source)
    return Move(shape, Layout(tuple(axis.target for axis in long), target), read)


def panel_moves(columns: int, step: int, depth: Sequence[tuple[int, int]], panel: int, groups: int = 1) -> list[Move]:
    """
    Those of panels `[groups, ceil(columns / panel), depth, panel]`.

    Columns of the operand are `step` elements apart; `depth` has size and stride of the axes that the depth runs over,
    the fastest last. Groups follow each other in the operand, with as many columns each.
    """
    total = math.prod(size for size, _ in depth)
    whole, rest = divmod(columns, panel)
    pitch = total * panel
    inner = contiguous_strides((*(size for size, _ in depth), panel))
    rows = [Axis(size, target, source) for (size, source), target in zip(depth, inner, strict=False)]
    group = Axis(groups, -(-columns // panel) * pitch, columns * step)
    found: list[Move] = []
    if whole:
        found.append(_move([group, Axis(whole, pitch, panel * step), *rows, Axis(panel, 1, step)]))
    if rest:
        begin = whole * pitch
        found.append(_move([group, *rows, Axis(rest, 1, step)], begin, whole * panel * step))
        found.append(_move([group, Axis(total, panel, 0), Axis(panel - rest, 1, 0)], begin + rest, None))
    return found


def depthwise_moves(channels: int, taps: Shape) -> list[Move]:
    """Those of filters `[channels, taps…, 1]` as `[taps…, channels]`."""
    count = math.prod(taps)
    return [_move([Axis(count, channels, 1), Axis(channels, 1, count)])]


def gate_moves(depth: int, hidden: int, panels: int, together: int, units: int) -> list[Move]:
    """
    Those of the weights `[depth, gates · hidden]` of a recurrence as `[blocks, panels, depth, together, units]`.
    """
    whole, rest = divmod(hidden, units)
    row, columns = together * units, panels * together * hidden
    pitch = panels * depth * row
    outer = [Axis(panels, depth * row, together * hidden), Axis(depth, row, columns), Axis(together, units, hidden)]
    found: list[Move] = []
    if whole:
        found.append(_move([Axis(whole, pitch, units), *outer, Axis(units, 1, 1)]))
    if rest:
        begin = whole * pitch
        found.append(_move([*outer, Axis(rest, 1, 1)], begin, whole * units))
        found.append(_move([*outer, Axis(units - rest, 1, 0)], begin + rest, None))
    return found
