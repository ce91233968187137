"""What the operators compute, on numpy arrays; an elementwise operator needs nothing here."""

from __future__ import annotations

import math

import numpy as np

from glow_extra_operators.operators import BiasGeluOp, PairwiseDotProductOp
from glow_mlir.ir.registry import semantics


@semantics(BiasGeluOp)
def bias_gelu(op: BiasGeluOp, x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Computed in f64, rounded once."""
    value = x.astype(np.float64) + bias
    erf = np.vectorize(math.erf, otypes=[np.float64])(value * math.sqrt(0.5))
    return (value * 0.5 * (erf + 1.0)).astype(x.dtype)


@semantics(PairwiseDotProductOp)
def pairwise_dot_product(op: PairwiseDotProductOp, x: np.ndarray) -> np.ndarray:
    """Sums are taken in f64."""
    wide = x.astype(np.float64)
    first, second = np.triu_indices(x.shape[1], 1)
    return np.einsum("bpd,bpd->bp", wide[:, first], wide[:, second]).astype(x.dtype)
