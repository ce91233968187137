"""Semantics of Fourier transforms: in f64, rounded once."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.glow_high.fourier import DftOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.interpreter.linear import wide
from glow_mlir.ir.registry import semantics


@semantics(DftOp)
def dft(op: DftOp, x: np.ndarray) -> np.ndarray:
    """The transform of numpy, or its inverse."""
    parts = wide(x)
    signal = parts[..., 0] + (1j * parts[..., 1] if x.shape[-1] == 2 else 0)
    axis, length = op.along(), integer(op.length)
    if op.gives_real():
        return np.fft.irfft(signal, length, axis)[..., None].astype(x.dtype)
    result = np.fft.ifft(signal, length, axis) if flag(op.inverse) else np.fft.fft(signal, length, axis)
    result = np.take(result, range(op.given()), axis)
    return np.stack([np.real(result), np.imag(result)], -1).astype(x.dtype)
