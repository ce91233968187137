"""Checkpoints of training: state by name in a file of safetensors, as PyTorch and others read it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.errors import InputError, PackageError
from glow_mlir.support.files import replaced


def write_checkpoint(path: Path, state: Mapping[str, np.ndarray]) -> None:
    """Write state, whole or not at all; raises `OptionError` where that is not possible."""
    content = _safetensors().save({name: np.require(value, requirements="C") for name, value in state.items()})
    with replaced(path) as file:
        file.write(content)


def read_checkpoint(path: Path) -> dict[str, np.ndarray]:
    """Read state; raises `InputError` for what is no file of safetensors."""
    library = _safetensors()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}", hint="a checkpoint is a file that save wrote"
        ) from error
    try:
        return library.load(content)
    except Exception as error:  # The library has an exception of its own, and raises others for damaged headers.
        hint = "check that the copy is complete"
        raise InputError(f"{path}: is no file of safetensors, or is cut off: {error}", hint=hint) from error


def _safetensors() -> Any:
    """The library; raises `PackageError` where it is not installed."""
    try:
        return import_module("safetensors.numpy")
    except ImportError as error:
        raise PackageError(
            "checkpoints need the package safetensors (hint: pip install 'glow-mlir[training]')"
        ) from error
