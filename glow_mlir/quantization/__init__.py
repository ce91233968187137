"""Quantization from observed numbers: histograms, profiles, calibration, schemas."""

from __future__ import annotations

from typing import Any

from glow_mlir.errors import RefusedNameError

IN_TWO_COMMANDS = (
    "glow-profile model.onnx --dataset samples.npz, then glow-run model.onnx --load-profile model.profile.json; "
    "see docs/quantization.md"
)
"""The equivalent here of per-sample int8 quantization."""

REFUSED_NAMES = ("CalibrationDataReader", "quantize_dynamic", "quantize_static")
"""Names of `onnxruntime.quantization` that are refused, with a hint."""


def __getattr__(name: str) -> Any:
    """Raise `AttributeError`, with a hint for `REFUSED_NAMES`."""
    if name in REFUSED_NAMES:
        raise RefusedNameError(f"glow_mlir.quantization has no '{name}'", hint=IN_TWO_COMMANDS)
    raise AttributeError(f"module 'glow_mlir.quantization' has no attribute '{name}'")
