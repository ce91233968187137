"""
The weight store: bytes of constants by digest, for the whole process, and the weight file beside a textual module.

The file has the layout of safetensors (8-byte header length, JSON header, raw little-endian data), with every tensor
aligned to 64 bytes and named by its digest. It is memory-mapped when read, so that unused weights cost nothing.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from glow_mlir.errors import ModelError

ALIGNMENT = 64

_KINDS: dict[str, str] = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}
"""numpy dtype → safetensors dtype."""

_STORE: dict[str, np.ndarray] = {}


LEAST_BY_RECIPE = 1 << 16
"""Bytes from which on a recipe identifies an array; smaller ones are hashed at once, and equal ones meet."""


def add_weights(array: np.ndarray, recipe: str = "") -> str:
    """
    Keep `array` and return its digest, which covers element type, shape and bytes. The array must not change.

    `recipe` says how the array follows from others, which it names by their digests, and leaves nothing out. The digest
    of a large array then covers the recipe instead of the bytes, which takes no time.
    """
    array = np.ascontiguousarray(array).reshape(array.shape)
    state = hashlib.sha256(f"{array.dtype.name}{array.shape}".encode())
    if recipe and array.nbytes >= LEAST_BY_RECIPE:
        state.update(recipe.encode())
    else:
        state.update(array.reshape(-1).view(np.uint8).data)
    digest = f"sha256:{state.hexdigest()[:32]}"
    if digest not in _STORE:
        array.flags.writeable = False
        _STORE[digest] = array
    return digest


def weights(digest: str) -> np.ndarray:
    """The array with that digest; raises `ModelError` where it was never added or read."""
    try:
        return _STORE[digest]
    except KeyError:
        raise ModelError(
            f"weights {digest} are not loaded", hint="the weight file belongs beside the .mlir file, under its name"
        ) from None


def write_weights(path: Path, digests: Iterable[str]) -> None:
    """Write those weights to `path`, atomically."""
    entries: dict[str, dict[str, object]] = {}
    position = 0
    arrays: list[tuple[int, np.ndarray]] = []
    for digest in dict.fromkeys(digests):
        array = weights(digest)
        entries[digest] = {
            "dtype": _KINDS[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [position, position + array.nbytes],
        }
        arrays.append((position, array))
        position += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-(8 + len(header)) % ALIGNMENT)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            for offset, array in arrays:
                file.seek(8 + len(header) + offset)
                file.write(array.reshape(-1).view(np.uint8).data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_weights(path: Path) -> None:
    """Map the weight file `path` into the store; raises `ModelError` where it is damaged."""
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        size = int.from_bytes(data[:8], "little")
        header = json.loads(bytes(data[8 : 8 + size]))
        kinds = {short: name for name, short in _KINDS.items()}
        for digest, entry in header.items():
            begin, end = entry["data_offsets"]
            raw = data[8 + size + begin : 8 + size + end]
            array = np.frombuffer(raw, dtype=kinds[entry["dtype"]]).reshape(entry["shape"])
            _STORE.setdefault(digest, array)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"the weight file cannot be read: {error}", file=str(path)) from error
