"""
The packed forms of kernels' operands, by the name in the property `packing` of an instruction.

Unpacking those of Winograd and Strassen restores the operand up to rounding.
"""

from __future__ import annotations

from functools import partial

from glow_mlir.codegen.selection.tables import packed_form
from glow_mlir.constants import layouts
from glow_mlir.constants.layouts import CodeCells, Interleave
from glow_mlir.constants.packed_layout import PackedLayout
from glow_mlir.constants.winograd import TileForm
from glow_mlir.dialects.shapes import Shape
from glow_mlir.ir.registry import Numbers


def _panels(shape: Shape, numbers: Numbers, transposed: bool) -> PackedLayout:
    """A matrix [K, N], or one stored as [N, K]."""
    return layouts.matrix_panels(shape, numbers["panel"], Interleave.of(numbers), transposed=transposed)


packed_form("panels")(partial(_panels, transposed=False))
packed_form("panels_transposed")(partial(_panels, transposed=True))


def _grouped(shape: Shape, numbers: Numbers, transposed: bool) -> PackedLayout:
    """Matrices [E, K, N], or ones stored as [E, N, K]."""
    return layouts.grouped_panels(shape, numbers["panel"], Interleave.of(numbers), transposed=transposed)


packed_form("grouped_panels")(partial(_grouped, transposed=False))
packed_form("grouped_panels_transposed")(partial(_grouped, transposed=True))


def _filters(shape: Shape, numbers: Numbers, by_channel: bool) -> PackedLayout:
    """Filters of a convolution, for inputs whose channels may lie apart."""
    panel, groups = numbers["panel"], numbers["groups"]
    return layouts.filter_panels(shape, panel, groups, Interleave.of(numbers), by_channel=by_channel)


packed_form("filters")(partial(_filters, by_channel=False))
packed_form("filters_by_channel")(partial(_filters, by_channel=True))


def _strassen(shape: Shape, numbers: Numbers, transposed: bool) -> PackedLayout:
    """A matrix [K, N] of a product by Strassen's algorithm, or one stored as [N, K], like filters."""
    return layouts.strassen_panels(shape, numbers["panel"], transposed=transposed)


packed_form("strassen")(partial(_strassen, transposed=False))
packed_form("strassen_transposed")(partial(_strassen, transposed=True))


@packed_form("winograd")
def winograd(shape: Shape, numbers: Numbers) -> PackedLayout:
    """Filters of a convolution by Winograd's algorithm."""
    tile = TileForm(numbers["height"], numbers["width"], numbers["stride"])
    return layouts.winograd_panels(shape, numbers["panel"], tile)


@packed_form("depthwise")
def depthwise(shape: Shape, numbers: Numbers) -> PackedLayout:
    """Filters of a convolution with one filter per channel."""
    return layouts.depthwise_filters(shape)


@packed_form("gates")
def gates(shape: Shape, numbers: Numbers) -> PackedLayout:
    """Weights of a recurrence."""
    return layouts.gate_blocks(shape, numbers["together"], numbers["units"])


@packed_form("cells")
def cells(shape: Shape, numbers: Numbers) -> PackedLayout:
    """Blocks of quantized weights [N, K], side by side in bytes."""
    return CodeCells(shape, numbers["panel"], numbers["bits"])
