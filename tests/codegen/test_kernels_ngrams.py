"""The kernel of counts of sequences of numbers, against the interpreter."""

from __future__ import annotations

import numpy as np
from execute import Case, check_all, sample

from glow_mlir.dialects.glow_high.ngrams import CRITERIA, TfIdfVectorizerOp


def test_counts():
    x = np.random.default_rng(0).integers(0, 5, (3, 12))
    pools = [
        np.array([[1, 5], [3, 0]]),
        np.array([[0, 1, 1], [1, 4, 2], [2, 2, 3], [3, 0, 4]]),
        np.array([[1, 1, 2, 6], [1, 2, 2, 7]]),
    ]
    cases = [Case(TfIdfVectorizerOp, x, sample((9,)), pools, size=9, max_skip_count=2, mode=mode) for mode in CRITERIA]
    check_all([*cases, Case(TfIdfVectorizerOp, x[0].astype("i4"), None, pools, size=9, mode="IDF")])
