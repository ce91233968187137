"""Forms in which constant operands are packed for kernels, and how to undo each of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from glow_mlir.constants.strassen import PRODUCTS, quarters_of, restore_right, right_sums
from glow_mlir.constants.winograd import TileForm, restore_filters, transform_filters


@dataclass(frozen=True)
class Interleave:
    """
    How the depth of panels is grouped, as dot products of narrow elements read it.

    `count` neighbours of each `run` of the depth, by default all of it, lie together, filled up with zeros: `[K,
    panel]` becomes `[rows, panel, count]`. The zeros of the last of them are in front, so that it is multiplied with
    whole neighbours, some `shared` with the one before; or behind, where a run has fewer elements in all. With `sums`
    above 0, a row comes first that begins with i32: the sum of each column times that number.
    """

    count: int = 1
    run: int = 0
    sums: int = 0

    @staticmethod
    def of(numbers: Mapping[str, int]) -> Interleave:
        """That of a packed form with these numbers."""
        return Interleave(numbers.get("interleave", 1), numbers.get("run", 0), numbers.get("sums", 0))

    @property
    def numbers(self) -> Mapping[str, int]:
        """The numbers by which a packed form says it."""
        found = {"interleave": self.count, "run": self.run, "sums": self.sums}
        return {name: number for name, number in found.items() if number} if self.count > 1 else {}

    def apply(self, panels: np.ndarray) -> np.ndarray:
        """Panels `[…, K, panel]` in this form."""
        if self.count == 1:
            return panels
        *outer, depth, panel = panels.shape
        run = self.run or depth
        groups = -(-run // self.count)
        whole = np.zeros((*outer, depth // max(1, run), groups * self.count, panel), panels.dtype)
        for here, there in self._places(run):
            whole[..., there, :] = panels.reshape(*outer, -1, run, panel)[..., here, :]
        cells = whole.reshape(*outer, -1, self.count, panel).swapaxes(-1, -2)
        if not self.sums:
            return np.ascontiguousarray(cells)
        sums = (panels.sum(axis=-2, dtype=np.int32) * self.sums).astype(np.int32)
        first = np.zeros((*outer, 1, panel, self.count), panels.dtype)
        first.reshape(*outer, -1).view(np.int32)[..., :panel] = sums
        return np.concatenate([first, cells], axis=-3)

    def undo(self, packed: np.ndarray, depth: int) -> np.ndarray:
        """The panels `[…, depth, panel]` that `apply` made these from."""
        if self.count == 1:
            return packed
        cells = packed[..., 1:, :, :] if self.sums else packed
        *outer, rows, panel, _ = cells.shape
        run = self.run or depth
        runs = depth // max(1, run)
        parts = cells.swapaxes(-1, -2).reshape(*outer, runs, rows // max(1, runs) * self.count, panel)
        found = [parts[..., there, :] for there in (slice(0), *(there for _, there in self._places(run)))]
        return np.concatenate(found, axis=-2).reshape(*outer, depth, panel)

    def shared(self, run: int) -> int:
        """How many zeros are in front of the last elements of a run."""
        return -run % self.count if run > self.count else 0

    def _places(self, run: int) -> list[tuple[slice, slice]]:
        """Where the elements of a run are among its groups: those of whole groups, and the rest."""
        whole, moved = run // self.count * self.count, self.shared(run)
        parts = [(slice(0, whole), 0), (slice(whole, run), moved)]
        return [(here, slice(here.start + by, here.stop + by)) for here, by in parts if here.stop > here.start]


_PLAIN = Interleave()


def pack_panels(matrix: np.ndarray, panel: int, interleave: Interleave = _PLAIN) -> np.ndarray:
    """
    The columns of a matrix in panels: `[K, N]` becomes `[ceil(N / panel), K, panel]`, filled up with zeros.

    `interleave` groups the depth. Raises `ValueError` where `matrix` has not two dimensions.
    """
    if matrix.ndim != 2:
        raise ValueError(f"a matrix has two dimensions, not {matrix.ndim}")
    return interleave.apply(_panels_of_rows(matrix.T[np.newaxis], panel)[0])


def _panels_of_rows(matrices: np.ndarray, panel: int) -> np.ndarray:
    """The rows of matrices in panels: `[groups, N, K]` becomes `[groups, ceil(N / panel), K, panel]`, in one copy."""
    groups, rows, columns = matrices.shape
    whole, rest = divmod(rows, panel)
    packed = np.empty((groups, whole + (rest > 0), columns, panel), dtype=matrices.dtype)
    packed[:, :whole] = matrices[:, : whole * panel].reshape(groups, whole, panel, columns).swapaxes(2, 3)
    if rest:
        packed[:, whole, :, :rest] = matrices[:, whole * panel :].swapaxes(1, 2)
        packed[:, whole, :, rest:] = 0
    return packed


def unpack_panels(packed: np.ndarray, rows: int, columns: int, interleave: Interleave = _PLAIN) -> np.ndarray:
    """The matrix `[rows, columns]` that `pack_panels` made these panels from."""
    panels = interleave.undo(packed, rows)
    count, rows, panel = panels.shape
    return np.ascontiguousarray(panels.transpose(1, 0, 2).reshape(rows, count * panel)[:, :columns])


def pack_filters(filters: np.ndarray, panel: int, groups: int = 1, interleave: Interleave = _PLAIN) -> np.ndarray:
    """
    Convolution filters in panels: `[O, kernel…, I]` becomes `[groups, ceil(O / groups / panel), K, panel]`.

    K runs over the kernel and the input channels of a group, the channels fastest, and is interleaved as that of
    `pack_panels`. Raises `ValueError` where the filters do not divide into the groups.
    """
    count = filters.shape[0]
    if count % groups:
        raise ValueError(f"{count} filters do not divide into {groups} groups")
    panels = _panels_of_rows(filters.reshape(groups, count // groups, math.prod(filters.shape[1:])), panel)
    return interleave.apply(panels)


def unpack_filters(packed: np.ndarray, shape: tuple[int, ...], interleave: Interleave = _PLAIN) -> np.ndarray:
    """The filters `[O, kernel…, I]` of that shape that `pack_filters` packed."""
    per_group, depth = shape[0] // packed.shape[0], math.prod(shape[1:])
    parts = [unpack_panels(group, depth, per_group, interleave).T for group in packed]
    return np.ascontiguousarray(np.concatenate(parts)).reshape(shape)


def pack_filters_by_channel(
    filters: np.ndarray, panel: int, groups: int = 1, interleave: Interleave = _PLAIN
) -> np.ndarray:
    """Like `pack_filters`, for an input whose channels lie apart: K runs over the channels, then the kernel."""
    return pack_filters(np.ascontiguousarray(np.moveaxis(filters, -1, 1)), panel, groups, interleave)


def unpack_filters_by_channel(
    packed: np.ndarray, shape: tuple[int, ...], interleave: Interleave = _PLAIN
) -> np.ndarray:
    """The filters `[O, kernel…, I]` of that shape that `pack_filters_by_channel` packed."""
    plain = unpack_filters(packed, (shape[0], shape[-1], *shape[1:-1]), interleave)
    return np.ascontiguousarray(np.moveaxis(plain, 1, -1))


def pack_depthwise(filters: np.ndarray) -> np.ndarray:
    """Depthwise filters, one a channel, with the channels last: `[C, kernel…, 1]` becomes `[kernel…, C]`."""
    return np.ascontiguousarray(np.moveaxis(filters[..., 0], 0, -1))


def unpack_depthwise(packed: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The filters `[C, kernel…, 1]` of that shape that `pack_depthwise` packed."""
    return np.ascontiguousarray(np.moveaxis(packed, -1, 0)).reshape(shape)


def pack_gates(matrix: np.ndarray, gates: int, together: int, units: int) -> np.ndarray:
    """
    The weights of a recurrence in blocks of hidden units: `[K, gates · hidden]` becomes `[blocks, gates / together, K,
    together · units]`, filled up with zeros. A panel holds `together` gates of the units of its block.
    """
    rows, columns = matrix.shape
    hidden = columns // gates
    blocks = -(-hidden // units)
    packed = np.zeros((blocks, gates // together, rows, together, units), dtype=matrix.dtype)
    parts = matrix.reshape(rows, gates // together, together, hidden).transpose(1, 0, 2, 3)
    for target, start in zip(packed, range(0, hidden, units), strict=True):
        part = parts[..., start : start + units]
        target[..., : part.shape[-1]] = part
    return packed.reshape(blocks, gates // together, rows, together * units)


def unpack_gates(packed: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The weights `[K, gates · hidden]` of that shape, a square for each gate, that `pack_gates` packed."""
    blocks, panels, rows, width = packed.shape
    hidden, columns = shape
    together = columns // hidden // panels
    units = width // together
    parts = packed.reshape(blocks, panels, rows, together, units).transpose(2, 1, 3, 0, 4)
    return np.ascontiguousarray(parts.reshape(rows, panels * together, blocks * units)[..., :hidden]).reshape(shape)


def pack_winograd(filters: np.ndarray, panel: int, form: TileForm) -> np.ndarray:
    """
    Filters of a convolution by Winograd's algorithm with tiles of that form: panels of their weights,
    `[O, 3, 3, C]` becomes `[ceil(O / panel), w * w, C, panel]`.
    """
    count, *_, channels = filters.shape
    panels = -(-count // panel)
    packed = np.zeros((panels, math.prod(form.weights), channels, panel), dtype=filters.dtype)
    # Panel by panel, whose numbers in f64 stay in the cache.
    for target, start in zip(packed, range(0, count, panel), strict=True):
        part = filters[start : start + panel]
        target[..., : len(part)] = transform_filters(part, form)  # Rounded once.
    return packed


def unpack_winograd(packed: np.ndarray, shape: tuple[int, ...], form: TileForm) -> np.ndarray:
    """The filters `[O, 3, 3, C]` of that shape that `pack_winograd` packed, up to rounding."""
    panels, size, channels, panel = packed.shape
    weights = packed.transpose(1, 2, 0, 3).reshape(size, channels, panels * panel)[..., : shape[0]]
    return restore_filters(weights, form)


def pack_strassen(matrix: np.ndarray, panel: int) -> np.ndarray:
    """
    The right operands of Strassen's products in panels: `[K, N]` becomes `[N / 2 / panel, 7, K / 2, panel]`.

    Raises `ValueError` where half of the columns are no whole number of panels, or the rows have no halves.
    """
    rows, columns = matrix.shape
    if columns % (2 * panel):
        raise ValueError(f"{columns} columns are not two halves of whole panels of {panel}")
    panels = columns // 2 // panel
    packed = np.empty((panels, PRODUCTS, rows // 2, panel), matrix.dtype)
    # Panels of a quarter as views: the sums are written to their places.
    quarters = [quarter.reshape(rows // 2, panels, panel).swapaxes(0, 1) for quarter in quarters_of(matrix)]
    right_sums(quarters, [packed[:, product] for product in range(PRODUCTS)])
    return packed


def unpack_strassen(packed: np.ndarray) -> np.ndarray:
    """The matrix `[K, N]` that `pack_strassen` packed, up to rounding."""
    panels, products, depth, panel = packed.shape
    return restore_right(np.moveaxis(packed, 0, 2).reshape(products, depth, panels * panel))
