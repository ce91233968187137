"""Operands in the layouts that kernels read."""

from __future__ import annotations

import numpy as np

from glow_mlir.constants.layouts import (
    PLAIN,
    Interleave,
    filter_panels,
    matrix_panels,
    strassen_panels,
    winograd_panels,
)
from glow_mlir.constants.packed_layout import PackedLayout
from glow_mlir.constants.winograd import TileForm


def laid_out(layout: PackedLayout, operand: np.ndarray) -> np.ndarray:
    """An operand in a layout, of its own type."""
    return layout.pack(operand, operand.dtype)


def in_panels(matrix: np.ndarray, panel: int, interleave: Interleave = PLAIN) -> np.ndarray:
    """The columns of a matrix in panels."""
    return laid_out(matrix_panels(matrix.shape, panel, interleave), matrix)


def filters_in_panels(filters: np.ndarray, panel: int, groups: int = 1) -> np.ndarray:
    """Filters of a convolution in panels."""
    return laid_out(filter_panels(filters.shape, panel, groups), filters)


def winograd(filters: np.ndarray, panel: int, form: TileForm) -> np.ndarray:
    """Filters of a convolution by Winograd's algorithm."""
    return laid_out(winograd_panels(filters.shape, panel, form), filters)


def strassen(matrix: np.ndarray, panel: int) -> np.ndarray:
    """The right operand of a product by Strassen's algorithm."""
    return laid_out(strassen_panels(matrix.shape, panel), matrix)
