"""GGUF files: header, metadata and tensor table; tensors are views of the mapped file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.constants.deferred import FileMap, is_array_shape
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.gguf.block_types import BLOCK_TYPES, OTHER_TYPES
from glow_mlir.frontends.gguf.cursor import Cursor
from glow_mlir.frontends.gguf.strings import Metadata
from glow_mlir.frontends.gguf.tensor import GgufTensor
from glow_mlir.support.dataclass import dataclass

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_AXES = 4
"""The maximum number of axes of a tensor."""

ALIGNMENT = "general.alignment"
"""The entry with the alignment of tensors in bytes, by default 32."""

MAX_ALIGNMENT = 1 << 16


@dataclass(frozen=True)
class GgufFile:
    """
    A GGUF file: its metadata and tensors by name, in the order of the file.

    A model that is split into several files has the metadata of the first, and the tensors of all `paths`.
    """

    paths: tuple[Path, ...]
    version: int
    metadata: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]

    @property
    def path(self) -> Path:
        """The first file."""
        return self.paths[0]

    @staticmethod
    def open(path: Path) -> GgufFile:
        """
        Map a file, and those that continue it, and read the headers; tensors are not read.

        The files must not change while tensors are used. Raises `ModelError` for a file that is damaged, missing or of
        another kind, and `UnsupportedError` for a version or a type of tensors that is not supported.
        """
        first = _opened(path)
        tensors = dict(first.tensors)
        paths = [path, *_continued(first)]
        for number, other in enumerate(paths[1:], start=1):
            part = _opened(other)
            found = part.metadata.get(SPLIT_NUMBER)
            if not isinstance(found, int) or found != number:
                raise ModelError(f"is not part {number + 1} of a model", file=str(other), node=SPLIT_NUMBER)
            for name, tensor in part.tensors.items():
                if name in tensors:
                    raise ModelError("an earlier part of the model has this tensor", file=str(other), node=name)
                tensors[name] = tensor
        return GgufFile(tuple(paths), first.version, first.metadata, tensors)


SPLIT_COUNT, SPLIT_NUMBER = "split.count", "split.no"
"""The entries with the number of files of a model, and the position of a file among them."""

MAX_PARTS = 1 << 12

_PART = re.compile(r"(.*)-00001-of-(\d{5})\.gguf")


def _continued(first: GgufFile) -> list[Path]:
    """The further files of a model that is split; raises `ModelError` where their names are unknown."""
    count = first.metadata.get(SPLIT_COUNT, 1)
    if not isinstance(count, int):
        raise ModelError("the entry is no number of files", file=str(first.path), node=SPLIT_COUNT)
    if count in (0, 1):
        return []
    named = _PART.fullmatch(first.path.name)
    if named is None or count > MAX_PARTS or int(named[2]) != count:
        hint = "give the first file, whose name ends with -00001-of-NUMBER.gguf"
        raise ModelError(f"is one of {count} files of a model", file=str(first.path), node=SPLIT_COUNT, hint=hint)
    names = (f"{named[1]}-{number:05}-of-{named[2]}.gguf" for number in range(2, count + 1))
    return [first.path.with_name(name) for name in names]


def _opened(path: Path) -> GgufFile:
    """One file."""
    file = str(path)
    try:
        with path.open("rb") as stream:
            data = memoryview(FileMap.of(stream))
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot be read: {error}", file=file, hint="a model is given by its path") from error
    cursor = Cursor(data, file)
    version = _version(cursor)
    tensor_count = cursor.count(_LEAST_TENSOR, "the number of tensors")
    entry_count = cursor.count(_LEAST_ENTRY, "the number of entries of the metadata")
    metadata = _metadata(cursor, entry_count)
    return GgufFile((path,), version, metadata, _tensors(cursor, tensor_count, _alignment(cursor, metadata)))


_LEAST_ENTRY = 8 + 4 + 1
"""Bytes of the shortest entry of the metadata: the length of its key, its type and a byte."""

_LEAST_TENSOR = 8 + 4 + 4 + 8
"""Bytes of the shortest entry of the tensor table: the length of its name, axes, type and offset."""


def _version(cursor: Cursor) -> int:
    """The version of the format, behind the magic."""
    if bytes(cursor.data[:4]) != MAGIC:
        raise ModelError("is not a GGUF file", file=cursor.file, hint="check that the download is complete")
    cursor.position = 4
    version = cursor.number("I", "the version")
    if version not in VERSIONS:
        is_swapped = int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS
        reason = "big-endian GGUF files are not supported" if is_swapped else f"version {version} is not supported"
        raise UnsupportedError(reason, file=cursor.file, hint="convert it with a newer llama.cpp")
    return version


def _metadata(cursor: Cursor, count: int) -> Mapping[str, Any]:
    """The entries of the metadata."""
    found: dict[str, Any] = {}
    for _ in range(count):
        cursor.key = ""
        key = cursor.string("a key of the metadata", "strict")
        cursor.key = key
        if key in found:
            raise cursor.error("the metadata has this key twice")
        found[key] = cursor.value()
    cursor.key = ""
    return Metadata(found)


def _alignment(cursor: Cursor, metadata: Mapping[str, Any]) -> int:
    """The alignment of tensors in bytes."""
    given = metadata.get(ALIGNMENT, 32)
    if not isinstance(given, int) or not 0 < given <= MAX_ALIGNMENT or given & (given - 1):
        cursor.key = ALIGNMENT
        raise cursor.error(f"the alignment must be a power of two up to {MAX_ALIGNMENT}, not {given}")
    return given


def _tensors(cursor: Cursor, count: int, alignment: int) -> dict[str, GgufTensor]:
    """The tensors of the table, as views of the file."""
    entries = [_entry(cursor) for _ in range(count)]
    cursor.key = ""
    data = cursor.data[-(-cursor.position // alignment) * alignment :]
    found: dict[str, GgufTensor] = {}
    for name, shape, kind, offset in entries:
        cursor.key = name
        if name in found:
            raise cursor.error("the tensor table has this name twice")
        found[name] = _tensor(cursor, name, shape, kind, data, offset, alignment)
    return found


def _entry(cursor: Cursor) -> tuple[str, tuple[int, ...], int, int]:
    """Name, shape, number of the type and offset of a tensor; the file has the sizes in reverse order."""
    cursor.key = ""
    name = cursor.string("the name of a tensor", "strict")
    cursor.key = name
    axes = cursor.number("I", "the number of axes")
    if axes > MAX_AXES:
        raise cursor.error(f"the tensor has {axes} axes, more than {MAX_AXES}")
    sizes = [cursor.number("Q", "a size") for _ in range(axes)]
    kind = cursor.number("I", "the type of a tensor")
    return name, tuple(reversed(sizes)), kind, cursor.number("Q", "the offset of a tensor")


def _tensor(
    cursor: Cursor, name: str, shape: tuple[int, ...], kind: int, data: memoryview, offset: int, alignment: int
) -> GgufTensor:
    """A tensor whose bytes begin at `offset` of the tensors' data."""
    if kind not in BLOCK_TYPES:
        known = ", ".join(item.name for item in BLOCK_TYPES.values())
        reason = f"tensors of the type {OTHER_TYPES.get(kind, kind)} are not supported"
        raise UnsupportedError(reason, file=cursor.file, node=name, hint=f"types are {known}")
    type_ = BLOCK_TYPES[kind]
    last, count = shape[-1] if shape else 1, math.prod(shape)
    if last % type_.elements:
        raise cursor.error(f"rows of {last} elements are no whole blocks of {type_.elements}, as {type_.name} has them")
    nbytes = count // type_.elements * type_.nbytes
    if offset % alignment:
        raise cursor.error(f"the offset {offset} is no multiple of the alignment {alignment}")
    if not 0 <= offset <= len(data) or nbytes > len(data) - offset:
        raise cursor.error(f"the tensor takes bytes {offset} to {offset + nbytes} of {len(data)}")
    if not is_array_shape(shape):
        raise cursor.error(f"the tensor of shape {list(shape)} has sizes that no array has")
    in_row = last // type_.elements * type_.nbytes
    raw = np.frombuffer(data[offset : offset + nbytes], np.uint8)
    raw.flags.writeable = False
    return GgufTensor(name, shape, type_, raw.reshape(*shape[:-1], in_row))
