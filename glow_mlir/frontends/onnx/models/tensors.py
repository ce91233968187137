"""The content of ONNX's tensors as arrays: large ones are memory-mapped from their files."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import checker, external_data_helper, helper, numpy_helper
from onnx.external_data_helper import uses_external_data

from glow_mlir.constants.deferred import FileMap, is_in_folder
from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.models.wire import INSIDE
from glow_mlir.support.dtypes import name_of, packed_bits

_COMPLETE_MODEL = "the model is damaged, check that the download is complete"
_COMPLETE_FILES = "put all weight files, complete, into the folder of the model"


MAX_SHOWN = 80
"""The maximum number of characters of a file name in an error."""


def content_of(path: Path, in_memory: bool = False) -> memoryview:
    """
    The content of a file, memory-mapped if possible, unless `in_memory`.

    A mapped file must not be truncated while its content is in use: reading past the end kills the process. Raises
    `OSError` if the file cannot be read.
    """
    with path.open("rb") as file:
        if in_memory:
            return memoryview(file.read())
        try:
            return memoryview(FileMap.of(file))
        except (ValueError, OSError):  # An empty file, or a pipe.
            return memoryview(file.read())


class Tensors:
    """
    The tensors of one model.

    `content` is the serialized model, the target of references left by `wire`. `directory` contains the files of
    external data; it is `None` if the model has no file. Files are memory-mapped unless `in_memory`.
    """

    def __init__(
        self, content: memoryview | None = None, directory: str | None = None, in_memory: bool = False
    ) -> None:
        self._content = content
        self._directory = directory
        self._in_memory = in_memory
        self._files: dict[str, memoryview] = {}

    def with_files(self, files: Mapping[str, bytes]) -> Tensors:
        """A copy with the contents of some files replaced."""
        found = Tensors(self._content, self._directory, self._in_memory)
        found._files |= {name: memoryview(content) for name, content in files.items()}
        return found

    def array(self, proto: onnx.TensorProto, what: str) -> np.ndarray:
        """The content of a tensor, read-only; raises `ModelError` about `what` if it cannot be read."""
        try:
            if any(size < 0 for size in proto.dims):
                raise ValueError(f"its shape is {list(proto.dims)}")
            if not uses_external_data(proto) and not is_inside(proto):
                is_raw = proto.HasField("raw_data") and not proto.HasField("segment")
                return _array(proto, memoryview(proto.raw_data)) if is_raw else _listed(proto)
            # onnx's own reader of these entries would warn of unknown keys.
            entries = {entry.key: entry.value for entry in proto.external_data}
            data = self._inside(proto) if is_inside(proto) else self._file(proto, entries.get("location", ""), what)
            length = _size(entries["length"]) if "length" in entries else None
            return _array(proto, _extent(data, _size(entries.get("offset", "0")), length))
        except (ValueError, OSError, KeyError, TypeError, checker.ValidationError) as error:
            hint = _COMPLETE_FILES if uses_external_data(proto) and not is_inside(proto) else _COMPLETE_MODEL
            raise ModelError(f"{what} cannot be read: {' '.join(str(error).split())}", hint=hint) from error

    def _inside(self, proto: onnx.TensorProto) -> memoryview:
        """The serialized model; raises `ValueError` if the tensor has other content as well."""
        has_others = proto.HasField("raw_data") or proto.float_data or proto.double_data
        if self._content is None or has_others or len(proto.external_data) != 3 or not uses_external_data(proto):
            raise ValueError("its content is stored twice")
        return self._content

    def _file(self, proto: onnx.TensorProto, location: str, what: str) -> memoryview:
        """The content of a file with external data; raises `ValueError` for a file outside the model's folder."""
        if not location:
            hint = "the model is damaged, export it again"
            raise ModelError(f"{what} has external data without a file name", hint=hint)
        if location in self._files:
            return self._files[location]
        if self._directory is None:
            hint = "import the model by its path"
            raise ModelError(f"{what} has external data, but the model has no folder", hint=hint)
        # Let ONNX refuse paths that leave the folder, by reading 0 bytes of the file.
        probe = onnx.TensorProto(name=proto.name, data_location=onnx.TensorProto.EXTERNAL)
        for key, value in (("location", location), ("length", "0")):
            probe.external_data.add(key=key, value=value)
        try:
            external_data_helper.load_external_data_for_tensor(probe, self._directory)
        except RuntimeError as error:  # A file system error in onnx's C++.
            raise ValueError(f"invalid file name '{location[:MAX_SHOWN]}'") from error
        if not is_in_folder(Path(self._directory), location):
            raise ValueError(f"its file '{location}' is not in the folder of the model")
        self._files[location] = content_of(Path(self._directory, location), self._in_memory)
        return self._files[location]


_LISTED: dict[int, tuple[str, type[np.generic]]] = {
    onnx.TensorProto.FLOAT: ("float_data", np.float32),
    onnx.TensorProto.INT32: ("int32_data", np.int32),
    onnx.TensorProto.INT64: ("int64_data", np.int64),
    onnx.TensorProto.INT8: ("int32_data", np.int32),
    onnx.TensorProto.UINT8: ("int32_data", np.int32),
}
"""Data type → the field that lists its elements, and the type of the field's elements."""


def _listed(proto: onnx.TensorProto) -> np.ndarray:
    """The elements listed in a tensor; faster than onnx's reader, which takes twice the time for a single element."""
    listed = _LISTED.get(proto.data_type)
    if listed is None or proto.HasField("raw_data") or proto.HasField("segment"):
        return numpy_helper.to_array(proto)
    name, stored = listed
    elements = np.asarray(getattr(proto, name), stored)
    return elements.astype(helper.tensor_dtype_to_np_dtype(proto.data_type)).reshape(proto.dims)


def is_inside(proto: onnx.TensorProto) -> bool:
    """Whether a tensor's content is in the file of its model, at a reference left by `wire`."""
    return any(entry.key == "location" and entry.value == INSIDE for entry in proto.external_data)


def _size(text: str) -> int:
    """The non-negative number in an entry of external data; raises `ValueError` for anything else."""
    try:
        size = int(text)
    except ValueError as error:
        raise ValueError(f"its offset or length is '{text[:MAX_SHOWN]}', which is not a number") from error
    if size < 0:
        raise ValueError(f"its offset or length {size} is negative")
    return size


def _extent(data: memoryview, offset: int, length: int | None) -> memoryview:
    """The bytes at an offset of a file; raises `ValueError` if they exceed the file."""
    end = len(data) if length is None else offset + length
    if offset > len(data) or end > len(data):
        raise ValueError(f"the file has {len(data)} bytes, too few for {offset} to {end}")
    return data[offset:end]


def _array(proto: onnx.TensorProto, data: memoryview) -> np.ndarray:
    """Decode the bytes of a tensor."""
    dtype = helper.tensor_dtype_to_np_dtype(proto.data_type)
    name = name_of(dtype)
    bits = packed_bits(name)
    expected = -(-math.prod(proto.dims) * (bits or 8 * dtype.itemsize) // 8)
    if name in ELEMENT_TYPES and len(data) != expected:
        raise ValueError(f"it has {len(data)} bytes instead of {expected}")
    if name not in ELEMENT_TYPES or bits or sys.byteorder == "big":
        whole = onnx.TensorProto(name=proto.name, data_type=proto.data_type, dims=proto.dims, raw_data=bytes(data))
        return numpy_helper.to_array(whole)
    return np.frombuffer(data, dtype).reshape(proto.dims)
