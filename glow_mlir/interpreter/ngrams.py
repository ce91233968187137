"""Semantics of n-gram counts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from glow_mlir.dialects.glow_high.ngrams import TfIdfVectorizerOp
from glow_mlir.dialects.properties import integer, text
from glow_mlir.errors import ExecutionError
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import semantics


@semantics(TfIdfVectorizerOp)
def tf_idf_vectorizer(
    op: TfIdfVectorizerOp,
    x: np.ndarray,
    weights: np.ndarray | None,
    pools: Sequence[np.ndarray],
) -> np.ndarray:
    """
    Count at all positions of all rows, for each distance between numbers; single numbers have none.

    N-grams are looked up by bisection, so that results are defined for unsorted pools.
    """
    size = integer(op.size)
    rows = x.reshape(-1, x.shape[-1])
    counts = np.zeros((len(rows), size), np.float64)
    for pool in pools:
        ngrams, columns = pool[:, :-1].tolist(), pool[:, -1].tolist()
        length = pool.shape[1] - 1
        for distance in range(1, 2 + (integer(op.max_skip_count) if length > 1 else 0)):
            for row, count in zip(rows.tolist(), counts, strict=True):
                for start in range(len(row) - distance * (length - 1)):
                    wanted = row[start : start + distance * (length - 1) + 1 : distance]
                    position = bisect_left(ngrams, wanted)
                    if position < len(ngrams) and ngrams[position] == wanted:
                        if not 0 <= columns[position] < size:
                            raise ExecutionError(op.FAILURE, node=location_name(op.location))
                        count[columns[position]] += 1
    factors = 1.0 if weights is None else weights.astype(np.float64)
    result = {"TF": counts, "IDF": (counts > 0) * factors, "TFIDF": counts * factors}[text(op.mode)]
    return result.reshape(*x.shape[:-1], size).astype(np.float32)
