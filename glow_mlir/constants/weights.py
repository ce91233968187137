"""
The weight store: constants by digest, process-wide, and the weight file next to a textual module.

An array stays in the store as long as something refers to it, such as a module by its digests.

The file has the layout of safetensors (8-byte header length, JSON header, raw little-endian data), with every tensor
aligned to 64 bytes and named by its digest. It is memory-mapped when read, so that unused weights cost nothing. The
metadata of the header have a checksum of each tensor, since a digest may describe a recipe.
"""

from __future__ import annotations

import functools
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast
from weakref import WeakValueDictionary

import numpy as np

from glow_mlir.constants.deferred import Deferred, FileMap, Stored
from glow_mlir.constants.sub_byte_values import pack_sub_bytes, unpack_sub_bytes
from glow_mlir.errors import ModelError
from glow_mlir.support.dtypes import named_dtype, packed_bits
from glow_mlir.support.files import replaced
from glow_mlir.support.json_text import parsed_json

ALIGNMENT = 64

_KINDS: dict[str, str] = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
    "float4_e2m1fn": "F4",
    "int4": "I4",
    "uint4": "U4",
    "int2": "I2",
    "uint2": "U2",
}
"""
numpy dtype → safetensors dtype. safetensors has no sub-byte integers: these and F4 are packed, the first element of a
byte in its lowest bits.
"""

_METADATA = "__metadata__"
"""The header entry that safetensors reserves for the writer: a map of strings."""

_DAMAGED = "the weight file is damaged, or not the one that was written with the .mlir file"

MIN_DEFERRED = 1 << 16
"""Arrays of at least this many bytes are deferred and identified by their recipe; smaller ones by content."""


def is_large(array: Deferred) -> bool:
    """Whether an array is deferred, and identified by its recipe."""
    return array.nbytes >= MIN_DEFERRED


def is_deferred(array: Deferred) -> bool:
    """Whether a constant keeps an array deferred: it is large, or its elements differ between layers."""
    return is_large(array) or array.is_per_layer


class Digest(str):
    """A unique digest of an array, which keeps the array in the store."""

    weights: Deferred


_STORE: WeakValueDictionary[str, Deferred] = WeakValueDictionary()


def add_weights(array: np.ndarray | Deferred) -> Digest:
    """
    Add an immutable array to the store, where it stays as long as its digest or a module with it.

    The digest covers element type, shape, and the content; for a large deferred array, its recipe instead.
    """
    if not isinstance(array, Deferred):
        array = Stored(array)
    elif not is_deferred(array):
        array = Stored(array.array())
    return _held(array.digest, array)


def _held(name: str, array: Deferred) -> Digest:
    """The digest for the array that the store has under that name, or else for this one."""
    digest = Digest(name)
    digest.weights = _STORE.setdefault(name, array)
    return digest


def known_digest(name: str) -> Digest | None:
    """The digest that keeps the array of that name; `None` if the store has none."""
    found = _STORE.get(name)
    return None if found is None else _held(name, found)


def deferred_weights(digest: str) -> Deferred:
    """The array with that digest; raises `ModelError` if the store has none."""
    try:
        return _STORE[digest]
    except KeyError:
        raise ModelError(
            f"weights {digest} are not loaded", hint="the weight file belongs beside the .mlir file, under its name"
        ) from None


def weights(digest: str) -> np.ndarray:
    """The elements of the array with that digest; raises `ModelError` if the store has none."""
    return deferred_weights(digest).array()


class WeightsOfFile(Stored):
    """An array of the weight file `path`, with the checksum of its elements when written."""

    def __init__(self, array: np.ndarray, name: str, path: Path, checksum: str) -> None:
        super().__init__(array, name)
        self.path, self._checksum = path, checksum

    @cached_property
    def is_whole(self) -> bool:
        """Whether the elements still match their checksum; computed once."""
        return _checksum(_packed(self.array())) == self._checksum


def _checksum(array: Stored) -> str:
    """A checksum to detect damage, at 2.5 GB/s: half the time of a digest."""
    return f"crc32:{functools.reduce(lambda found, data: zlib.crc32(data, found), array.contents(), 0):08x}"


def check_weights(digest: str, symbol: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """
    Raise `ModelError` if weights from a file do not have that type, or are damaged.

    `symbol` is the constant that they belong to.
    """
    found = _STORE.get(digest)
    if not isinstance(found, WeightsOfFile):
        return
    reason = type_fault(digest, found, dtype, shape) or ("" if found.is_whole else f"weights {digest} are damaged")
    if reason:
        # Another file may have the right ones.
        del _STORE[digest]
        raise ModelError(reason, file=str(found.path), node=symbol, hint=_DAMAGED)


def type_fault(digest: str, found: Deferred, dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """The difference between weights and the type of their constant; empty if there is none."""
    if (found.dtype, found.shape) == (dtype, shape):
        return ""
    return f"weights {digest} are {found.dtype.name}{list(found.shape)}, not {dtype.name}{list(shape)}"


def write_weights(path: Path, digests: Iterable[str]) -> None:
    """Write these weights to `path` atomically; raises `OptionError` if that is impossible."""
    entries: dict[str, dict[str, object]] = {}
    checksums: dict[str, str] = {}
    position = 0
    arrays: list[tuple[int, str]] = []
    for digest in dict.fromkeys(digests):
        array = deferred_weights(digest)
        nbytes = -(-array.size * packed_bits(array.dtype.name) // 8) or array.nbytes
        entries[digest] = {
            "dtype": _KINDS[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [position, position + nbytes],
        }
        checksums[digest] = "crc32:00000000"
        arrays.append((position, digest))
        position += -(-nbytes // ALIGNMENT) * ALIGNMENT
    size = len(_header(entries, checksums))
    with replaced(path) as file:
        for offset, digest in arrays:
            array = _packed(deferred_weights(digest).array())
            checksums[digest] = _checksum(array)
            file.seek(size + offset)
            file.writelines(array.contents())
        file.seek(0)
        file.write(_header(entries, checksums))


def _packed(array: np.ndarray) -> Stored:
    """Convert elements to the file's form: sub-byte elements are packed."""
    bits = packed_bits(array.dtype.name)
    if not bits:
        return Stored(array)
    quantized = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & np.uint8((1 << bits) - 1)
    return Stored(pack_sub_bytes(quantized, bits))


def _unpacked(data: memoryview, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Convert the file's form to elements; raises `ValueError` for a wrong number of bytes."""
    bits = packed_bits(dtype.name)
    if not bits:
        return np.frombuffer(data, dtype).reshape(shape)
    count = math.prod(shape)
    if len(data) != -(-count * bits // 8):
        raise ValueError(f"{count} elements of {dtype.name} are not {len(data)} bytes")
    return unpack_sub_bytes(np.frombuffer(data, np.uint8), bits)[:count].view(dtype).reshape(shape)


def _header(entries: Mapping[str, object], checksums: Mapping[str, str]) -> bytes:
    """The header of a weight file; checksums have fixed length, so that its size is known before they are."""
    header = json.dumps({_METADATA: checksums, **entries}, separators=(",", ":")).encode()
    header += b" " * (-(8 + len(header)) % ALIGNMENT)
    return len(header).to_bytes(8, "little") + header


def read_weights(path: Path, in_memory: bool = False) -> list[Digest]:
    """
    Map the weight file `path` into the store, or read it `in_memory`, and return the digests that keep it.

    A mapped file must not be truncated while its weights are used. Raises `ModelError` for a damaged header; the
    weights themselves are checked by `check_weights`, once a module is read that refers to them.
    """
    try:
        with path.open("rb") as file:
            data = memoryview(file.read() if in_memory else FileMap.of(file))
        size = int.from_bytes(data[:8], "little")
        header = _read_header(bytes(data[8 : 8 + size]))
        checksums = header.pop(_METADATA, {})
        kinds = {short: name for name, short in _KINDS.items()}
        found: list[Digest] = []
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            if not 0 <= begin <= end <= len(data) - 8 - size or min(entry["shape"], default=0) < 0:
                raise ValueError(f"it has no bytes from {begin} to {end} of shape {entry['shape']}")
            if name not in checksums:
                raise ValueError(f"it has no checksum of {name}")
            raw = data[8 + size + begin : 8 + size + end]
            array = _unpacked(raw, named_dtype(kinds[entry["dtype"]]), tuple(entry["shape"]))
            found.append(_held(name, WeightsOfFile(array, name, path, checksums[name])))
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"the weight file cannot be read: {error}", file=str(path), hint=_DAMAGED) from error


def _read_header(data: bytes) -> dict[str, Any]:
    """Read the header of a weight file; raises `ValueError` if there is none."""
    try:
        found = parsed_json(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError("its header is damaged, or it is a file of another kind")
    return cast("dict[str, Any]", found)
