"""
Strassen's matrix product as three tables: seven products of quarters instead of eight (Numer. Math. 13, 1969).

Both operands and the result are cut into quarters, numbered (0, 0), (0, 1), (1, 0), (1, 1). Product number p is the sum
of quarters of the left operand with factors `LEFT[p]`, times the sum of quarters of the right one with `RIGHT[p]`;
quarter q of the result is the sum of the products with factors `RESULT[q]`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LEFT = np.array(
    [
        *([1, 0, 0, 1], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 1]),
        *([1, 1, 0, 0], [-1, 0, 1, 0], [0, 1, 0, -1]),
    ]
)

RIGHT = np.array(
    [
        *([1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, -1], [-1, 0, 1, 0]),
        *([0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]),
    ]
)

RESULT = np.array([[1, 0, 0, 1, -1, 0, 1], [0, 0, 1, 0, 1, 0, 0], [0, 1, 0, 1, 0, 0, 0], [1, -1, 1, 0, 0, 1, 0]])

PRODUCTS = len(LEFT)
"""Number of products of quarters."""


def quarters_of(matrix: np.ndarray) -> list[np.ndarray]:
    """The quarters of a matrix, as views; raises `ValueError` if a size is odd."""
    rows, columns = matrix.shape
    if rows % 2 or columns % 2:
        raise ValueError(f"a matrix of {rows}x{columns} has no quarters")
    return [half for rows in np.split(matrix, 2) for half in np.split(rows, 2, axis=1)]


def right_sums(quarters: Sequence[np.ndarray], targets: Sequence[np.ndarray]) -> None:
    """Write the right operands of the products, in order, to `targets`: sums of quarters of a matrix, of any shape."""
    for factors, target in zip(RIGHT, targets, strict=True):
        _write_sum(factors, quarters, target)


def _write_sum(factors: np.ndarray, quarters: Sequence[np.ndarray], target: np.ndarray) -> None:
    """Write the sum of the quarters with factor 1 minus the sum of those with -1."""
    first, *others = sorted((q for q in range(4) if factors[q]), key=lambda q: -factors[q])
    total = quarters[first]
    for q in others:
        total = (np.add if factors[q] > 0 else np.subtract)(total, quarters[q], out=target)
    if not others:
        target[...] = total


def restore_right(sums: np.ndarray) -> np.ndarray:
    """Reconstruct the matrix `[K, N]` given to `right_sums`: two quarters exactly, the others up to rounding."""
    first, last = sums[1], sums[4]
    return np.block([[first, sums[5] - first], [sums[6] - last, last]])
