"""The product of a small constant matrix with vectors in few operations: the transforms of Winograd's algorithm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Value


def emit_product(b: Builder, matrix: np.ndarray, values: Sequence[Value]) -> list[Value]:
    """
    Return `matrix` times `values`, one value per row.

    Two columns or two rows that differ only in signs, as those of opposite points, share their arithmetic: they become
    a sum and a difference.
    """
    matrix, inputs = _with_merged_columns(b, np.array(matrix), list(values))
    results: dict[int, Value] = {}
    for row, coefficients in enumerate(matrix):
        if row in results:
            continue
        other = next((index for index in range(row + 1, len(matrix)) if _mirrored(coefficients, matrix[index])), None)
        if other is None:
            results[row] = _combination(b, coefficients, inputs)
            continue
        equal = coefficients == matrix[other]
        even = _combination(b, np.where(equal, coefficients, 0), inputs)
        odd = _combination(b, np.where(equal, 0, coefficients), inputs)
        results[row], results[other] = even + odd, even - odd
    return [results[row] for row in range(len(matrix))]


def _with_merged_columns(b: Builder, matrix: np.ndarray, values: list[Value]) -> tuple[np.ndarray, list[Value]]:
    """Rewrite the product to use the sum and the difference of two values whose columns differ only in signs."""
    for first in range(len(values)):
        for second in range(first + 1, len(values)):
            left, right = matrix[:, first].copy(), matrix[:, second].copy()
            if _mirrored(left, right):
                equal = left == right
                matrix[:, first], matrix[:, second] = np.where(equal, left, 0), np.where(equal, 0, left)
                values[first], values[second] = values[first] + values[second], values[first] - values[second]
    return matrix, values


def _mirrored(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether all pairs of numbers are equal or opposite, with at least one of each."""
    kept, flipped = (left == right) & (left != 0), (left == -right) & (left != 0)
    return bool(kept.any() and flipped.any() and (np.abs(left) == np.abs(right)).all())


def _combination(b: Builder, coefficients: np.ndarray, values: Sequence[Value]) -> Value:
    """Return the sum of values times coefficients, beginning with a coefficient 1, which needs no product."""
    terms = [(float(factor), value) for factor, value in zip(coefficients, values, strict=True) if factor]
    (factor, value), *rest = sorted(terms, key=lambda term: term[0] != 1)
    total = value if factor == 1 else value * factor
    for factor, value in rest:
        if abs(factor) == 1:
            total = total + value if factor == 1 else total - value
        else:
            total = b.fma(value, factor, total)
    return total
