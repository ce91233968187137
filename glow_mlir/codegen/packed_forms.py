"""
The forms in which kernels have constant operands, by the name that `packing` of an instruction says.

Those of Winograd and Strassen give their operand back up to rounding.
"""

from __future__ import annotations

import numpy as np

from glow_mlir.codegen.selection.tables import packed_form
from glow_mlir.constants import codes, packing
from glow_mlir.constants.winograd import TileForm
from glow_mlir.dialects.shapes import Shape
from glow_mlir.ir.registry import Numbers


@packed_form("panels")
def panels(packed: np.ndarray, shape: Shape, numbers: Numbers) -> np.ndarray:
    """A matrix [K, N]."""
    rows, columns = shape
    return packing.unpack_panels(packed, rows, columns, packing.Interleave.of(numbers))


@packed_form("panels_transposed")
def panels_transposed(packed: np.ndarray, shape: Shape, numbers: Numbers) -> np.ndarray:
    """A matrix that is stored as [N, K]."""
    columns, rows = shape
    return np.ascontiguousarray(packing.unpack_panels(packed, rows, columns, packing.Interleave.of(numbers)).T)


@packed_form("cells")
def cells(packed: np.ndarray, shape: Shape, numbers: Numbers) -> np.ndarray:
    """Codes in blocks, of weights [N, K], in the bytes that they lie side by side in."""
    return codes.unpack_cells(packed, numbers["bits"], shape[0])


@packed_form("filters")
def filters(packed: np.ndarray, shape: Shape, numbers: Numbers) -> np.ndarray:
    """Filters of a convolution."""
    return packing.unpack_filters(packed, shape, packing.Interleave.of(numbers))


@packed_form("filters_by_channel")
def filters_by_channel(packed: np.ndarray, shape: Shape, numbers: Numbers) -> np.ndarray:
    """Filters of a convolution whose input has its channels apart."""
    return packing.unpack_filters_by_channel(packed, shape, packing.Interleave.of(numbers))


@packed_form("depthwise")
def depthwise(packed: np.ndarray, shape: Shape, numbers: Numbers) -> np.ndarray:
    """Filters of a convolution with one for each channel."""
    return packing.unpack_depthwise(packed, shape)


@packed_form("gates")
def gates(packed: np.ndarray, shape: Shape, numbers: Numbers) -> np.ndarray:
    """Weights of a recurrence."""
    return packing.unpack_gates(packed, shape)


@packed_form("winograd")
def winograd(packed: np.ndarray, shape: Shape, numbers: Numbers) -> np.ndarray:
    """Filters of a convolution by Winograd's algorithm."""
    tile = TileForm(numbers["height"], numbers["width"], numbers["stride"])
    return packing.unpack_winograd(packed, shape, tile)


@packed_form("strassen")
def strassen(packed: np.ndarray, shape: Shape, numbers: Numbers) -> np.ndarray:
    """A matrix [K, N] of a product by Strassen's algorithm."""
    return packing.unpack_strassen(packed)


@packed_form("strassen_transposed")
def strassen_transposed(packed: np.ndarray, shape: Shape, numbers: Numbers) -> np.ndarray:
    """The same for a matrix that is stored as [N, K], as filters of one element are."""
    return np.ascontiguousarray(packing.unpack_strassen(packed).T).reshape(shape)
