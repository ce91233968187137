"""onnxruntime's names of errors, each with what is raised here in its place, and the names of `glow_mlir`."""

from __future__ import annotations

from typing import Any

import glow_mlir
from glow_mlir.errors import ExecutionError, GlowError, InputError, ModelError, OutOfMemoryError, UnsupportedError

Fail = GlowError
InvalidArgument = InputError
NoSuchFile = NoModel = InvalidProtobuf = InvalidGraph = ModelLoaded = ModelError
NotFound = InputError
NotImplemented = UnsupportedError  # It is what programs import.
RuntimeException = EPFail = ExecutionError
EngineError = OutOfMemoryError
ModelLoadCanceled = ModelRequiresCompilation = DeviceReset = ExecutionError


def __getattr__(name: str) -> Any:
    """The names of the package."""
    return getattr(glow_mlir, name)
