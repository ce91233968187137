"""
The weight store: constants by digest, for the whole process, and the weight file beside a textual module.

An array is in the store as long as something refers to it: a module does by the digests in it.

The file has the layout of safetensors (8-byte header length, JSON header, raw little-endian data), with every tensor
aligned to 64 bytes and named by its digest. It is memory-mapped when read, so that unused weights cost nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np

from glow_mlir.deferred import Deferred, FileMap, Stored
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

LEAST_DEFERRED = 1 << 16
"""Bytes from which on arrays are deferred and known by how they are made; of smaller ones, equal ones meet."""


def is_large(array: Deferred) -> bool:
    """Whether an array is deferred, and known by how it is made."""
    return array.nbytes >= LEAST_DEFERRED


class Digest(str):
    """What tells an array from every other. It keeps the array in the store."""

    weights: Deferred


_STORE: WeakValueDictionary[str, Deferred] = WeakValueDictionary()


def add_weights(array: np.ndarray | Deferred) -> Digest:
    """
    Put an array, which must not change, into the store, where it stays as long as its digest or a module with it.

    The digest covers element type, shape, and the content; of a large deferred array, how it is made instead.
    """
    if not isinstance(array, Deferred):
        array = Stored(array)
    elif not is_large(array):
        array = Stored(array.array())
    return _held(array.digest, array)


def _held(name: str, array: Deferred) -> Digest:
    """The digest of that name, for what the store has under it, or else this array."""
    digest = Digest(name)
    digest.weights = _STORE.setdefault(name, array)
    return digest


def known_digest(name: str) -> Digest | None:
    """The digest that keeps the array of that name; `None` where the store has none."""
    found = _STORE.get(name)
    return None if found is None else _held(name, found)


def deferred_weights(digest: str) -> Deferred:
    """The array with that digest; raises `ModelError` where the store has none."""
    try:
        return _STORE[digest]
    except KeyError:
        raise ModelError(
            f"weights {digest} are not loaded", hint="the weight file belongs beside the .mlir file, under its name"
        ) from None


def weights(digest: str) -> np.ndarray:
    """The elements of the array with that digest; raises `ModelError` where the store has none."""
    return deferred_weights(digest).array()


def write_weights(path: Path, digests: Iterable[str]) -> None:
    """Write those weights to `path`, atomically."""
    entries: dict[str, dict[str, object]] = {}
    position = 0
    arrays: list[tuple[int, Deferred]] = []
    for digest in dict.fromkeys(digests):
        array = deferred_weights(digest)
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
                file.write(np.ascontiguousarray(array.array()).reshape(-1).view(np.uint8).data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_weights(path: Path, in_memory: bool = False) -> list[Digest]:
    """
    Map the weight file `path` into the store, or read it `in_memory`, and return what keeps it.

    A mapped file must not be cut off as long as its weights are used. Raises `ModelError` where it is damaged.
    """
    try:
        with path.open("rb") as file:
            data = memoryview(file.read() if in_memory else FileMap.of(file))
        size = int.from_bytes(data[:8], "little")
        header = json.loads(bytes(data[8 : 8 + size]))
        kinds = {short: name for name, short in _KINDS.items()}
        found: list[Digest] = []
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            if not 0 <= begin <= end <= len(data) - 8 - size or min(entry["shape"], default=0) < 0:
                raise ValueError(f"it has no bytes from {begin} to {end} of shape {entry['shape']}")
            raw = data[8 + size + begin : 8 + size + end]
            array = np.frombuffer(raw, dtype=kinds[entry["dtype"]]).reshape(entry["shape"])
            found.append(_held(name, Stored(array, name)))
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        hint = "the weight file is damaged, or not the one that was written with the .mlir file"
        raise ModelError(f"the weight file cannot be read: {error}", file=str(path), hint=hint) from error
