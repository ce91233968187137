"""Checkpoints of training: state by name in a safetensors file, readable by PyTorch and others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.errors import InputError, PackageError
from glow_mlir.support.files import replaced
from glow_mlir.support.optional_packages import imported


def write_checkpoint(path: Path, state: Mapping[str, np.ndarray], notes: Mapping[str, str] | None = None) -> None:
    """Write state, and notes as metadata, atomically; raises `OptionError` if that fails."""
    arrays = {name: np.asarray(value, order="C") for name, value in state.items()}
    content = _safetensors().save(arrays, dict(notes) if notes else None)
    with replaced(path) as file:
        file.write(content)


def read_checkpoint(path: Path) -> dict[str, np.ndarray]:
    """Read state; raises `InputError` if it is not a safetensors file."""
    library = _safetensors()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", file=str(path), hint="a checkpoint is a file that save wrote"
        ) from error
    try:
        return library.load(content)
    except Exception as error:  # The library also raises other exceptions for damaged headers.
        hint = "check that the copy is complete"
        raise InputError(f"is no file of safetensors, or is cut off: {error}", file=str(path), hint=hint) from error


def read_notes(path: Path) -> dict[str, str]:
    """The notes of a file that `read_checkpoint` reads."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return header.get("__metadata__", {})


def _safetensors() -> Any:
    """The library; raises `PackageError` if it is not installed."""
    return imported("safetensors.numpy", "training", "checkpoints need the package safetensors", error=PackageError)
