"""
What onnxruntime's native module has besides the names of `glow_mlir`.

That is its names of errors, each with what is raised here in its place, and its own forms of sessions and bindings.
"""

from __future__ import annotations

from typing import Any

import glow_mlir
from glow_mlir.api.onnxruntime import native
from glow_mlir.errors import ExecutionError, GlowError, InputError, ModelError, OutOfMemoryError, UnsupportedError
from glow_mlir.support import dlpack

Fail = GlowError
InvalidArgument = InputError
NoSuchFile = NoModel = InvalidProtobuf = InvalidGraph = ModelLoaded = ModelError
NotFound = InputError
NotImplemented = UnsupportedError  # It is what programs import.
RuntimeException = EPFail = ExecutionError
EngineError = OutOfMemoryError
is_dlpack_uint8_tensor = dlpack.is_uint8
OrtValueVector, SessionIOBinding = native.OrtValueVector, native.SessionIOBinding
ModelLoadCanceled = ModelRequiresCompilation = DeviceReset = ExecutionError


def __getattr__(name: str) -> Any:
    """The names of the package."""
    return getattr(glow_mlir, name)
