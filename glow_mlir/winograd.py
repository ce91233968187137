"""
The transforms of Winograd's algorithm for convolutions with 3x3 filters, as matrices.

F(m x m, 3x3) computes a tile of m x m outputs from n x n inputs, n = m + 2, with one product for each input instead of
nine for each output: `A^T ((G g G^T) * (B^T d B)) A` (Lavin and Gray, arXiv 1509.09308). The matrices follow from n - 1
points by the construction of Toom and Cook; the last row belongs to infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

TAPS = 3
"""Elements of a line of the filter."""

POINTS: dict[int, tuple[float, ...]] = {2: (0, 1, -1), 4: (0, 5 / 8, -5 / 8, 3 / 2, -3 / 2)}
"""
Outputs of a line of a tile → points. Opposite points share half of their arithmetic, and all entries of A and B are
numbers of f32. Of what was measured for four outputs, ±5/8 and ±3/2 are the most accurate: a third of the error of the
usual ±1 and ±2.
"""


@dataclass(frozen=True)
class Transforms:
    """The matrices in one dimension, in f64: `filter` G [n, 3], `input` B^T [n, n], `output` A^T [m, n]."""

    filter: np.ndarray
    input: np.ndarray
    output: np.ndarray

    @property
    def outputs(self) -> int:
        """Outputs of a line of a tile, m."""
        return self.output.shape[0]

    @property
    def inputs(self) -> int:
        """Inputs of a line of a tile, n; a tile has that many points squared."""
        return self.output.shape[1]


@cache
def transforms(outputs: int) -> Transforms:
    """The transforms for tiles of `outputs` x `outputs`; raises `KeyError` where `POINTS` has none."""
    points = POINTS[outputs]
    inputs = outputs + TAPS - 1
    filter_, input_, output = np.zeros((inputs, TAPS)), np.zeros((inputs, inputs)), np.zeros((outputs, inputs))
    for index, point in enumerate(points):
        others = [other for other in points if other != point]
        filter_[index] = np.power(point, range(TAPS)) / np.prod([point - other for other in others])
        input_[index, :-1] = _polynomial(others)
        output[:, index] = np.power(point, range(outputs))
    filter_[-1, -1] = output[-1, -1] = 1
    input_[-1] = _polynomial(points)
    return Transforms(filter_, input_, output)


def _polynomial(roots: list[float] | tuple[float, ...]) -> np.ndarray:
    """The coefficients, the lowest first, of the polynomial with those roots and a leading one."""
    return np.poly(np.array(roots, dtype=np.float64))[::-1]


def transform_filters(filters: np.ndarray, outputs: int) -> np.ndarray:
    """
    The filters `[O, 3, 3, C]` at the points, `[n * n, C, O]`: computed in f64, rounded once.

    Raises `ValueError` for filters of another size.
    """
    matrix = transforms(outputs).filter
    count, *taps, channels = filters.shape
    if taps != [TAPS, TAPS]:
        raise ValueError(f"filters of {taps} have no transform, only those of 3x3")
    lines = np.moveaxis(filters, 0, -1).astype(np.float64, order="C").reshape(TAPS * TAPS, -1)
    return (np.kron(matrix, matrix) @ lines).astype(filters.dtype).reshape(-1, channels, count)


def restore_filters(points: np.ndarray, outputs: int) -> np.ndarray:
    """
    The filters `[O, 3, 3, C]` from what `transform_filters` made of them.

    The points overdetermine a filter: the solution with the least squares differs from the original by rounding.
    """
    matrix = transforms(outputs).filter
    _, channels, count = points.shape
    inverse = np.linalg.pinv(np.kron(matrix, matrix))
    taps = inverse @ points.reshape(points.shape[0], -1).astype(np.float64)
    return np.ascontiguousarray(np.moveaxis(taps.reshape(TAPS, TAPS, channels, count), -1, 0)).astype(points.dtype)
