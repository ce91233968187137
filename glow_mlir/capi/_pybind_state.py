"""The same as `onnxruntime_pybind11_state`: what onnxruntime's own modules import it by."""

from __future__ import annotations

from typing import Any

from glow_mlir.capi import onnxruntime_pybind11_state


def __getattr__(name: str) -> Any:
    """The names of `onnxruntime_pybind11_state`."""
    return getattr(onnxruntime_pybind11_state, name)
