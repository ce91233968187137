"""Packed weights: the panels of columns that the matrix kernels read, made with numpy at compile time."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def pack_panels(matrix: Array, panel: int) -> Array:
    """
    Return the columns of a matrix in panels: `[K, N]` becomes `[ceil(N / panel), K, panel]`.

    The last panel is filled up with zeros. Raises `ValueError` when `matrix` has not two dimensions.
    """
    if matrix.ndim != 2:
        raise ValueError(f"a matrix has two dimensions, not {matrix.ndim}")
    rows, columns = matrix.shape
    count = -(-columns // panel)
    padded = np.zeros((rows, count * panel), dtype=matrix.dtype)
    padded[:, :columns] = matrix
    return np.ascontiguousarray(padded.reshape(rows, count, panel).transpose(1, 0, 2))


def unpack_panels(panels: Array, columns: int) -> Array:
    """Return the matrix `[K, columns]` that `pack_panels` made these panels from."""
    count, rows, panel = panels.shape
    return np.ascontiguousarray(panels.transpose(1, 0, 2).reshape(rows, count * panel)[:, :columns])


def pack_filters(filters: Array, panel: int, groups: int = 1) -> Array:
    """
    Return convolution filters in panels: `[O, *kernel, I]` becomes `[groups, ceil(O / groups / panel), K, panel]`.

    K runs over the kernel and the input channels of a group, the channels fastest. Raises `ValueError` when the
    filters do not divide into the groups.
    """
    count = filters.shape[0]
    if count % groups:
        raise ValueError(f"{count} filters do not divide into {groups} groups")
    split = filters.reshape(groups, count // groups, -1)
    return np.stack([pack_panels(np.ascontiguousarray(group.T), panel) for group in split])


def pack_depthwise(filters: Array) -> Array:
    """Return depthwise filters, one per channel, as the kernel reads them: `[C, *kernel, 1]` becomes `[*kernel, C]`."""
    return np.ascontiguousarray(np.moveaxis(filters[..., 0], 0, -1))
