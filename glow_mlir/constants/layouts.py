"""Operand layouts of kernels, by the forms in `packing` of an instruction and their parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from glow_mlir.constants.packed_layout import Blocks, PackedLayout
from glow_mlir.constants.strassen import PRODUCTS, restore_right, right_sums
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BYTES, pack_dot_groups, unpack_dot_groups
from glow_mlir.constants.tiled_layout import Cut, TiledLayout, Transform
from glow_mlir.constants.winograd import TAPS, TileForm, restore_filters, transform_filters
from glow_mlir.support.dataclass import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Interleave:
    """
    How the depth of panels is interleaved for dot products of narrow elements.

    `count` neighbours of each `run` of the depth, by default all of it, are adjacent. Zero padding of the last group
    goes in front of it, so that it is multiplied with full groups, some elements shared with the previous one; or
    behind it, if a run has fewer elements in all. `sums` are those of `TiledLayout`.
    """

    count: int = 1
    run: int = 0
    sums: int = 0

    @staticmethod
    def of(numbers: Mapping[str, int]) -> Interleave:
        """The interleaving of a packed form with these parameters."""
        return Interleave(numbers.get("interleave", 1), numbers.get("run", 0), numbers.get("sums", 0))

    @property
    def numbers(self) -> Mapping[str, int]:
        """The parameters that describe it in a packed form."""
        found = {"interleave": self.count, "run": self.run, "sums": self.sums}
        return {name: number for name, number in found.items() if number} if self.count > 1 else {}

    def shared(self, run: int) -> int:
        """The number of zeros in front of the last elements of a run."""
        return Cut(self.count, is_shared=True).moved(run)

    def runs(self, depth: int) -> dict[str, int]:
        """The sizes of the depth axes: number of runs, and elements per run."""
        run = self.run or depth
        return {"r": depth // max(1, run), "k": run}

    @property
    def cuts(self) -> dict[str, Cut]:
        """The cut of the elements of a run."""
        return {"k": Cut(self.count, is_shared=True)} if self.count > 1 else {}


PLAIN = Interleave()
"""Panels whose neighbours along the depth are in separate rows."""


def matrix_panels(plain: Shape, panel: int, interleave: Interleave = PLAIN, *, transposed: bool = False) -> TiledLayout:
    """
    Pack the columns of a matrix `[K, N]`, or `[N, K]` if `transposed`, in panels: `[ceil(N / panel), K, panel]`.

    Raises `ValueError` unless it has two dimensions.
    """
    if len(plain) != 2:
        raise ValueError(f"a matrix has two dimensions, not {len(plain)}")
    columns, depth = plain if transposed else plain[::-1]
    return TiledLayout(
        "panels_transposed" if transposed else "panels",
        plain,
        "n r k" if transposed else "r k n",
        "n/ (r k/) n% k%" if interleave.cuts else "n/ (r k) n%",
        {"n": columns, **interleave.runs(depth)},
        {"n": Cut(panel), **interleave.cuts},
        {"panel": panel, **interleave.numbers},
        sums=interleave.sums,
    )


def grouped_panels(
    plain: Shape, panel: int, interleave: Interleave = PLAIN, *, transposed: bool = False
) -> TiledLayout:
    """
    Pack the columns of matrices `[E, K, N]`, or `[E, N, K]` if `transposed`, in separate panels: `[E, ceil(N / panel),
    K, panel]`.

    Raises `ValueError` unless there are three dimensions.
    """
    if len(plain) != 3:
        raise ValueError(f"matrices side by side have three dimensions, not {len(plain)}")
    groups, *matrix = plain
    columns, depth = matrix if transposed else matrix[::-1]
    return TiledLayout(
        "grouped_panels_transposed" if transposed else "grouped_panels",
        plain,
        "g n r k" if transposed else "g r k n",
        "g n/ (r k/) n% k%" if interleave.cuts else "g n/ (r k) n%",
        {"g": groups, "n": columns, **interleave.runs(depth)},
        {"n": Cut(panel), **interleave.cuts},
        {"panel": panel, **interleave.numbers},
        sums=interleave.sums,
    )


def filter_panels(
    plain: Shape, panel: int, groups: int = 1, interleave: Interleave = PLAIN, *, by_channel: bool = False
) -> TiledLayout:
    """
    Pack filters `[O, kernel…, I]` of a convolution in panels: `[groups, ceil(O / groups / panel), K, panel]`.

    K runs over the kernel and the input channels of a group, channels fastest; or, `by_channel`, over channels, then
    the kernel, for an input in channels-first layout. Raises `ValueError` if the filters do not divide into the groups.
    """
    count, *taps, channels = plain
    if count % groups:
        raise ValueError(f"{count} filters do not divide into {groups} groups")
    rows = "r k/" if interleave.cuts else "r k"
    depth = math.prod(taps) * (1 if by_channel else channels)
    return TiledLayout(
        "filters_by_channel" if by_channel else "filters",
        plain,
        "g n r k c" if by_channel else "g n r k",
        f"g n/ ({'c ' if by_channel else ''}{rows}) n%{' k%' if interleave.cuts else ''}",
        {"g": groups, "n": count // groups, "c": channels, **interleave.runs(depth)},
        {"n": Cut(panel), **interleave.cuts},
        {"panel": panel, "groups": groups, **interleave.numbers},
        sums=interleave.sums,
    )


def depthwise_filters(plain: Shape) -> TiledLayout:
    """Pack depthwise filters `[C, kernel…, 1]` with channels last: `[kernel…, C]`."""
    channels, *taps, _ = plain
    sizes = {f"t{axis}": size for axis, size in enumerate(taps)}
    kernel = " ".join(sizes)
    return TiledLayout("depthwise", plain, f"n {kernel}", f"{kernel} n", {"n": channels, **sizes}, {})


def gate_blocks(plain: Shape, together: int, units: int) -> TiledLayout:
    """
    Pack the weights `[K, gates · hidden]` of a recurrence, K equal to hidden, in blocks of hidden units: `[blocks,
    gates / together, K, together · units]`. A panel holds `together` gates of the units of its block.
    """
    depth, columns = plain
    sizes = {"k": depth, "p": columns // depth // together, "t": together, "n": depth}
    numbers = {"together": together, "units": units}
    return TiledLayout("gates", plain, "k p t n", "n/ p k (t n%)", sizes, {"n": Cut(units)}, numbers)


@dataclass(frozen=True)
class WinogradTransform(Transform):
    """Transform filters `n t c` to Winograd weights of a tile form, in f64."""

    tile: TileForm
    axes = "w c n"

    def apply(self, operand: np.ndarray) -> np.ndarray:
        filters, _, channels = operand.shape
        return transform_filters(operand.reshape(filters, TAPS, TAPS, channels), self.tile)

    def undo(self, result: np.ndarray) -> np.ndarray:
        return restore_filters(result, self.tile)


def winograd_panels(plain: Shape, panel: int, tile: TileForm) -> TiledLayout:
    """
    Pack filters `[O, 3, 3, C]` for Winograd's algorithm with tiles of that form: panels of their weights, `[ceil(O /
    panel), w * w, C, panel]`. Raises `ValueError` for filters of another size.
    """
    filters, *taps, channels = plain
    if taps != [TAPS, TAPS]:
        raise ValueError(f"filters of {taps} have no transform, only those of 3x3")
    sizes = {"n": filters, "t": TAPS * TAPS, "c": channels, "w": math.prod(tile.weights)}
    numbers = {"panel": panel, "height": tile.height, "width": tile.width, "stride": tile.stride}
    transform = WinogradTransform(tile)
    return TiledLayout("winograd", plain, "n t c", "n/ w c n%", sizes, {"n": Cut(panel)}, numbers, transform)


@dataclass(frozen=True)
class StrassenTransform(Transform):
    """
    Compute the right operands of Strassen's products from the halves `a` of the rows and `b` of the columns of a
    matrix.
    """

    transposed: bool
    axes = "q k n"

    def apply(self, operand: np.ndarray) -> np.ndarray:
        halves = operand.transpose(2, 3, 0, 1) if self.transposed else operand
        rows, depth, columns, count = halves.shape
        found = np.empty((PRODUCTS, depth, count), operand.dtype)
        right_sums([halves[a, :, b] for a in range(rows) for b in range(columns)], list(found))
        return found

    def undo(self, result: np.ndarray) -> np.ndarray:
        matrix = restore_right(result)
        return matrix.T if self.transposed else matrix


def strassen_panels(plain: Shape, panel: int, *, transposed: bool = False) -> TiledLayout:
    """
    Pack the right operands of Strassen's products in panels: a matrix `[K, N]`, or `[N, …, K]` if stored `transposed`,
    becomes `[N / 2 / panel, 7, K / 2, panel]`.

    Raises `ValueError` if half of the columns is not a multiple of the panel, or the number of rows is odd.
    """
    columns, depth = (plain[0], math.prod(plain[1:])) if transposed else plain[::-1]
    if columns % (2 * panel):
        raise ValueError(f"{columns} columns are not two halves of whole panels of {panel}")
    if depth % 2:
        raise ValueError(f"a matrix of {depth}x{columns} has no quarters")
    sizes = {"a": 2, "k": depth // 2, "b": 2, "n": columns // 2, "q": PRODUCTS}
    return TiledLayout(
        "strassen_transposed" if transposed else "strassen",
        plain,
        "b n a k" if transposed else "a k b n",
        "n/ q k n%",
        sizes,
        {"n": Cut(panel)},
        {"panel": panel},
        StrassenTransform(transposed),
    )


@dataclass(frozen=True)
class CodeCells(PackedLayout):
    """Block-quantized weights [N, K], packed in the bytes they are stored in: see `sub_byte_values.pack_dot_groups`."""

    plain: Shape
    panel: int
    bits: int
    form = "cells"

    @property
    def numbers(self) -> Mapping[str, int]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return {"panel": self.panel, "bits": self.bits}

    @property
    def shape(self) -> Shape:
        columns, in_bytes = self.plain
        return -(-columns // self.panel), in_bytes // DOT_GROUP_BYTES, self.panel, DOT_GROUP_BYTES

    @property
    def blocks(self) -> Blocks:
        return Blocks(axis=0, unit=self.panel, target=0)

    def write(self, operand: np.ndarray, packed: np.ndarray) -> None:
        packed[...] = pack_dot_groups(operand, self.bits, self.panel)

    def unpack(self, packed: np.ndarray) -> np.ndarray:
        return unpack_dot_groups(packed, self.bits, self.plain[0])
