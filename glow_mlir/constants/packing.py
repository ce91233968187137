"""Forms in which constant operands are packed for kernels, and how to undo each of them."""

from __future__ import annotations

import math

import numpy as np

from glow_mlir.constants.strassen import PRODUCTS, quarters_of, restore_right, right_sums
from glow_mlir.constants.winograd import TileForm, restore_filters, transform_filters


def pack_panels(matrix: np.ndarray, panel: int, interleave: int = 1) -> np.ndarray:
    """
    The columns of a matrix in panels: `[K, N]` becomes `[ceil(N / panel), K, panel]`, filled up with zeros.

    With an `interleave` of more than 1, so many neighbours along K lie together, as dot products of narrow elements
    read them: `[ceil(N / panel), ceil(K / interleave), panel, interleave]`. Raises `ValueError` where `matrix` has not
    two dimensions.
    """
    if matrix.ndim != 2:
        raise ValueError(f"a matrix has two dimensions, not {matrix.ndim}")
    return interleaved(_panels_of_rows(matrix.T[np.newaxis], panel)[0], interleave)


def interleaved(panels: np.ndarray, count: int) -> np.ndarray:
    """Panels `[…, K, panel]` as `[…, ceil(K / count), panel, count]`, filled up with zeros; themselves for 1."""
    if count == 1:
        return panels
    *outer, depth, panel = panels.shape
    groups = -(-depth // count)
    whole = np.zeros((*outer, groups * count, panel), panels.dtype)
    whole[..., :depth, :] = panels
    return np.ascontiguousarray(whole.reshape(*outer, groups, count, panel).swapaxes(-1, -2))


def taken_apart(packed: np.ndarray, depth: int, count: int) -> np.ndarray:
    """The panels `[…, depth, panel]` whose rows `interleaved` grouped by `count`."""
    if count == 1:
        return packed
    *outer, groups, panel, _ = packed.shape
    return packed.swapaxes(-1, -2).reshape(*outer, groups * count, panel)[..., :depth, :]


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


def unpack_panels(packed: np.ndarray, rows: int, columns: int, interleave: int = 1) -> np.ndarray:
    """The matrix `[rows, columns]` that `pack_panels` made these panels from."""
    panels = taken_apart(packed, rows, interleave)
    count, rows, panel = panels.shape
    return np.ascontiguousarray(panels.transpose(1, 0, 2).reshape(rows, count * panel)[:, :columns])


def pack_filters(filters: np.ndarray, panel: int, groups: int = 1, interleave: int = 1) -> np.ndarray:
    """
    Convolution filters in panels: `[O, kernel…, I]` becomes `[groups, ceil(O / groups / panel), K, panel]`.

    K runs over the kernel and the input channels of a group, the channels fastest, and is interleaved as that of
    `pack_panels`. Raises `ValueError` where the filters do not divide into the groups.
    """
    count = filters.shape[0]
    if count % groups:
        raise ValueError(f"{count} filters do not divide into {groups} groups")
    panels = _panels_of_rows(filters.reshape(groups, count // groups, math.prod(filters.shape[1:])), panel)
    return interleaved(panels, interleave)


def unpack_filters(packed: np.ndarray, shape: tuple[int, ...], interleave: int = 1) -> np.ndarray:
    """The filters `[O, kernel…, I]` of that shape that `pack_filters` packed."""
    per_group, depth = shape[0] // packed.shape[0], math.prod(shape[1:])
    parts = [unpack_panels(group, depth, per_group, interleave).T for group in packed]
    return np.ascontiguousarray(np.concatenate(parts)).reshape(shape)


def pack_filters_by_channel(filters: np.ndarray, panel: int, groups: int = 1) -> np.ndarray:
    """Like `pack_filters`, for an input whose channels lie apart: K runs over the channels, then the kernel."""
    return pack_filters(np.ascontiguousarray(np.moveaxis(filters, -1, 1)), panel, groups)


def unpack_filters_by_channel(packed: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The filters `[O, kernel…, I]` of that shape that `pack_filters_by_channel` packed."""
    return np.ascontiguousarray(np.moveaxis(unpack_filters(packed, (shape[0], shape[-1], *shape[1:-1])), 1, -1))


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
