"""Folders of checkpoints: their description, and tensors as views of mapped files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from glow_mlir.constants.deferred import FileMap, is_array_shape, is_in_folder
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import named_dtype

CONFIG = "config.json"
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"

DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64"}
"""The types of tensors in checkpoints → their dtypes; integers are positions, which old checkpoints have."""

MAX_JSON = 1 << 26
"""The maximum size in bytes of a description, an index or a header."""


@dataclass(frozen=True)
class CheckpointFolder:
    """A folder: the content of `config.json`, and the tensors of all its files by name."""

    path: Path
    config: Mapping[str, Any]
    tensors: Mapping[str, np.ndarray]
    files: tuple[Path, ...]

    @staticmethod
    def is_at(path: Path) -> bool:
        """Whether a folder has files of safetensors by the names that are looked for."""
        return (path / SINGLE).exists() or (path / INDEX).exists()

    @staticmethod
    def open(path: Path) -> CheckpointFolder:
        """
        Read the description and map the files of a folder, which must not change while tensors are used.

        Raises `ModelError` for files that are missing, damaged, or contradict the index.
        """
        config = read_json(path / CONFIG)
        files = _files(path)
        tensors: dict[str, np.ndarray] = {}
        for file in files:
            for name, array in mapped_tensors(file).items():
                if name in tensors:
                    raise ModelError("two files have this tensor", file=str(file), node=name)
                tensors[name] = array
        return CheckpointFolder(path, config, tensors, files)


def read_json(path: Path) -> Mapping[str, Any]:
    """The object in a JSON file; raises `ModelError` if there is none."""
    found = read_value(path)
    if not isinstance(found, dict):
        raise ModelError("has no object at its top", file=str(path))
    return cast("dict[str, Any]", found)


def read_value(path: Path) -> object:
    """The value in a JSON file; raises `ModelError` if it cannot be read."""
    try:
        if path.stat().st_size > MAX_JSON:
            raise ModelError(f"takes more than {MAX_JSON} bytes", file=str(path))
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no JSON, or is cut off"
        hint = "a checkpoint is a folder with config.json and model.safetensors"
        raise ModelError(f"cannot be read: {reason}", file=str(path), hint=hint) from error


def _files(folder: Path) -> tuple[Path, ...]:
    """The files with tensors."""
    if not (folder / INDEX).exists():
        return (folder / SINGLE,)
    index = read_json(folder / INDEX).get("weight_map")
    if not isinstance(index, dict):
        raise ModelError("has no 'weight_map'", file=str(folder / INDEX))
    names = sorted({str(name) for name in cast("dict[str, Any]", index).values()})
    for name in names:
        if not is_in_folder(folder, name):
            raise ModelError(f"names the file '{name}', which is not in its folder", file=str(folder / INDEX))
    return tuple(folder / name for name in names)


def mapped_tensors(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file of safetensors, as views."""
    try:
        with path.open("rb") as file:
            data = memoryview(FileMap.of(file))
    except (OSError, ValueError) as error:
        hint = "a checkpoint is a folder with config.json and model.safetensors"
        raise ModelError(f"cannot be read: {error}", file=str(path), hint=hint) from error
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(len(data) - 8, MAX_JSON):
        raise ModelError("is no file of safetensors, or is cut off", file=str(path))
    try:
        header: object = json.loads(bytes(data[8 : 8 + size]))
    except (ValueError, RecursionError) as error:
        raise ModelError("the header is damaged", file=str(path)) from error
    if not isinstance(header, dict):
        raise ModelError("the header is no object", file=str(path))
    body = data[8 + size :]
    entries = cast("dict[str, Any]", header)
    return {name: _view(path, name, entry, body) for name, entry in entries.items() if name != "__metadata__"}


def _view(path: Path, name: str, entry: Any, body: memoryview) -> np.ndarray:
    """The tensor of an entry of the header."""
    try:
        kind, (begin, end), shape = str(entry["dtype"]), entry["data_offsets"], tuple(entry["shape"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError("the entry in the header is damaged", file=str(path), node=name) from error
    if any(isinstance(number, bool) or not isinstance(number, int) for number in (begin, end, *shape)):
        raise ModelError("the entry in the header has sizes that are no integers", file=str(path), node=name)
    if kind not in DTYPES:
        hint = f"types are {', '.join(DTYPES)}"
        raise UnsupportedError(f"tensors of the type {kind} are not supported", file=str(path), node=name, hint=hint)
    dtype = named_dtype(DTYPES[kind])
    fits = 0 <= begin <= end <= len(body) and is_array_shape(shape)
    if not fits or math.prod(shape) * dtype.itemsize != end - begin:
        reason = f"the tensor of shape {list(shape)} takes bytes {begin} to {end} of {len(body)}"
        raise ModelError(reason, file=str(path), node=name, hint="check that the download is complete")
    return np.frombuffer(body[begin:end], dtype).reshape(shape)
