"""TensorFlow Lite files: tensors, operators and signatures; the numbers of constants are views of the file."""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.limits import MAX_ELEMENTS
from glow_mlir.frontends.tflite.builtins import BUILTINS
from glow_mlir.frontends.tflite.sparsity import densified
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.flatbuffer import Flatbuffer, Table

IDENTIFIER = b"TFL3"
"""The identifier of the format, behind the offset of the first table."""

TYPES: Mapping[int, str] = {
    0: "float32",
    1: "float16",
    2: "int32",
    3: "uint8",
    4: "int64",
    5: "string",
    6: "bool",
    7: "int16",
    8: "complex64",
    9: "int8",
    10: "float64",
    11: "complex128",
    12: "uint64",
    13: "resource",
    14: "variant",
    15: "uint32",
    16: "uint16",
    17: "int4",
    18: "bfloat16",
}
"""Number of a type → its name, which is that of a dtype but for those in `OTHER_TYPES`."""

OTHER_TYPES = frozenset(("string", "resource", "variant", "int4", "bfloat16"))
"""Types without a dtype of numpy: constants of int4 are unpacked to int8, and those of others are not read."""

INTEGERS = frozenset(("int8", "uint8", "int16", "uint16", "int32"))
"""Types of quantized values."""

CUSTOM = "CUSTOM "
"""What the names of custom operators begin with."""

MAX_AXES = 8
"""The maximum number of axes of a tensor."""


FREE = -1
"""The size of a free axis in the signature of a shape."""


@dataclass(frozen=True)
class Quantization:
    """Scales of f32 and zero points, one or one for each index along `axis`."""

    scales: np.ndarray
    zero_points: np.ndarray
    axis: int


@dataclass(frozen=True)
class Tensor:
    """A tensor: its shape, the name of its dtype, and its values, if it is a constant."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    values: np.ndarray | None = None
    quantization: Quantization | None = None
    is_variable: bool = False
    """Whether an operator keeps its values from call to call."""
    free_axes: tuple[int, ...] = ()
    """The axes whose size callers may change; `shape` has the size without a change."""

    def labelled(self, name: str) -> tuple[int | str, ...]:
        """The shape as an input or output `name`, whose free axes are labels: the name and the axis, as in ONNX."""
        return tuple(f"{name}.{axis}" if axis in self.free_axes else size for axis, size in enumerate(self.shape))


@dataclass(frozen=True)
class Operator:
    """An operator: its name, the numbers of its tensors (-1 where one is left out), and its options."""

    kind: str
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Table | None
    custom_options: bytes = b""


@dataclass(frozen=True)
class Subgraph:
    """A graph: its tensors, the numbers of those that are inputs and outputs, and its operators in order."""

    name: str
    tensors: Sequence[Tensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: Sequence[Operator]


@dataclass(frozen=True)
class Signature:
    """A named entry: the names of tensors of a subgraph, by the number of the tensor."""

    key: str
    subgraph: int
    inputs: Mapping[int, str] = field(default_factory=dict[int, str])
    outputs: Mapping[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True)
class TfliteFile:
    """A file: its subgraphs, of which the first is the entry, and its signatures."""

    file: str
    description: str
    subgraphs: Sequence[Subgraph]
    signatures: Sequence[Signature]
    metadata: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """The bytes of each entry of metadata, by name."""

    @staticmethod
    def open(path: Path) -> TfliteFile:
        """Map a file, which must not change; raises `ModelError` if it is damaged, missing, or of another kind."""
        try:
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is empty"
            raise ModelError(f"cannot be read: {reason}", file=str(path)) from error
        return TfliteFile.of(memoryview(data), str(path))

    @staticmethod
    def of(data: memoryview, file: str = "") -> TfliteFile:
        """Read the bytes of a file; errors name it by `file`."""
        if bytes(data[4:8]) != IDENTIFIER:
            raise ModelError("is not a TensorFlow Lite model", file=file, hint="the bytes 4 to 8 of one are 'TFL3'")
        return _Reader(Flatbuffer(data, file)).read()


class _Reader:
    """The reading of one file. Numbers of fields are those of TensorFlow Lite's schema, version 3."""

    def __init__(self, buffer: Flatbuffer) -> None:
        self._buffer = buffer
        self._root = buffer.root()
        self._buffers = self._root.tables(4, "buffer")
        self._kinds = [self._kind(code) for code in self._root.tables(1, "operator code")]
        self._densified = 0
        """The number of elements of the sparse constants that are read, in dense form."""

    def read(self) -> TfliteFile:
        """The file."""
        if (version := self._root.number(0, "I")) != 3:
            raise UnsupportedError(f"is of version {version} of the format", hint="version 3 is read")
        subgraphs = [self._subgraph(table, number) for number, table in enumerate(self._root.tables(2, "subgraph"))]
        if not subgraphs:
            raise self._buffer.error("it has no subgraph")
        signatures = [self._signature(table, subgraphs) for table in self._root.tables(7, "signature")]
        return TfliteFile(self._buffer.file, self._root.text(3), subgraphs, signatures, self._metadata())

    def _metadata(self) -> dict[str, np.ndarray]:
        """The bytes of each entry of metadata."""
        found: dict[str, np.ndarray] = {}
        for table in self._root.tables(6, "metadata"):
            number = table.number(1, "I")
            if number >= len(self._buffers):
                raise self._buffer.error(f"{table.role} has buffer {number} of {len(self._buffers)}")
            found[table.text(0)] = self._bytes(self._buffers[number])
        return found

    def _kind(self, code: Table) -> str:
        """The name of an operator: of a builtin in capitals, or the name of a custom one."""
        number = max(code.number(0, "b"), code.number(3, "i"))
        if not 0 <= number < len(BUILTINS):
            raise UnsupportedError(f"operator {number} is not known", hint="the file is of a later version")
        return f"{CUSTOM}{code.text(1)}" if BUILTINS[number] == "CUSTOM" else BUILTINS[number]

    def _subgraph(self, table: Table, number: int) -> Subgraph:
        tensors = [self._tensor(item) for item in table.tables(0, f"tensor of subgraph {number}:")]
        operators = [
            self._operator(item, tensors, position)
            for position, item in enumerate(table.tables(3, f"operator of subgraph {number}:"))
        ]
        inputs, outputs = (self._numbers(table, field_, tensors) for field_ in (1, 2))
        if -1 in (*inputs, *outputs):
            raise self._buffer.error(f"an input or output of subgraph {number} is left out")
        return Subgraph(table.text(4), tensors, inputs, outputs, operators)

    def _numbers(self, table: Table, number: int, tensors: Sequence[Tensor]) -> tuple[int, ...]:
        """The numbers of tensors in a field."""
        found = tuple(table.array(number, "<i4").tolist())
        if wrong := [item for item in found if not -1 <= item < len(tensors)]:
            raise self._buffer.error(f"{table.role} names tensor {wrong[0]} of {len(tensors)}")
        return found

    def _tensor(self, table: Table) -> Tensor:
        name, kind = table.text(3), table.number(1, "b")
        if kind not in TYPES:
            raise self._buffer.error(f"tensor '{name}' is of the unknown type {kind}")
        shape = tuple(table.array(0, "<i4").tolist())
        is_large = math.prod(size or 1 for size in shape) > MAX_ELEMENTS
        if is_large or len(shape) > MAX_AXES or min(shape, default=0) < 0:
            raise self._buffer.error(f"{table.role} has the shape {list(shape)}")
        values, is_variable = self._values(table, name, shape, TYPES[kind]), bool(table.number(5, "?"))
        free = tuple(np.flatnonzero(table.array(7, "<i4")[: len(shape)] == FREE).tolist())
        quantization = _quantization(table, TYPES[kind])
        return Tensor(name, shape, TYPES[kind], values, quantization, free_axes=free, is_variable=is_variable)

    def _values(self, table: Table, name: str, shape: tuple[int, ...], dtype: str) -> np.ndarray | None:
        """The numbers of a constant; tensors without elements are constants."""
        number = table.number(2, "I")
        if number >= len(self._buffers):
            raise self._buffer.error(f"{table.role} has buffer {number} of {len(self._buffers)}")
        data = self._bytes(self._buffers[number])
        if not len(data) and (0 not in shape or table.number(5, "?")):
            return None
        count, is_packed = math.prod(shape), dtype == "int4"
        if dtype in OTHER_TYPES and not is_packed:
            return None
        kind = np.dtype(np.int8 if is_packed else dtype)
        if (sparsity := table.table(6, f"the sparsity of '{name}'")) is not None:
            stored = len(data) // kind.itemsize
            stored_values = data[: stored * kind.itemsize].view(kind.newbyteorder("<"))
            dense = densified(sparsity, stored_values, shape, self._densified)
            self._densified += dense.size
            return dense
        if len(data) != (-(-count // 2) if is_packed else count * kind.itemsize):
            raise self._buffer.error(f"tensor '{name}' of {dtype} and shape {list(shape)} has {len(data)} bytes")
        return (_unpacked(data, count) if is_packed else data.view(kind.newbyteorder("<"))).reshape(shape)

    def _bytes(self, table: Table) -> np.ndarray:
        """The bytes of a buffer, in its table or, for files above 2 GB, at an offset of the file."""
        offset, size = table.number(1, "Q"), table.number(2, "Q")
        if offset > 1:
            self._buffer.check(offset, size, table.role)
            return np.frombuffer(self._buffer.data[offset : offset + size], np.uint8)
        return table.array(0, "u1")

    def _operator(self, table: Table, tensors: Sequence[Tensor], position: int) -> Operator:
        number = table.number(0, "I")
        if number >= len(self._kinds):
            raise self._buffer.error(f"{table.role} has the kind {number} of {len(self._kinds)}")
        inputs, outputs = (self._numbers(table, field_, tensors) for field_ in (1, 2))
        name = next((tensors[item].name for item in outputs if item >= 0), "") or f"{self._kinds[number]}:{position}"
        options = table.table(4, f"the options of {name}") or table.table(12, f"the options of {name}")
        return Operator(self._kinds[number], name, inputs, outputs, options, table.array(5, "u1").tobytes())

    def _signature(self, table: Table, subgraphs: Sequence[Subgraph]) -> Signature:
        number = table.number(4, "I")
        if number >= len(subgraphs):
            raise self._buffer.error(f"{table.role} is of subgraph {number} of {len(subgraphs)}")
        maps = [
            {item.number(1, "I"): item.text(0) for item in table.tables(field_, "a name of a signature")}
            for field_ in (0, 1)
        ]
        return Signature(table.text(2), number, *maps)


def _quantization(table: Table, dtype: str) -> Quantization | None:
    """The quantization of a tensor, if it is quantized."""
    found = table.table(4, f"the quantization of {table.role}")
    scales = np.empty(0, np.float32) if found is None else found.array(2, "<f4")
    if found is None or not len(scales):
        return None
    zeros = found.array(3, "<i8")
    if len(zeros) != len(scales):
        zeros = np.zeros(len(scales), np.int64)
    if not (np.isfinite(scales) & (scales >= 0)).all():
        raise table.buffer.error(f"a scale of {table.role} is no number from 0 on")
    limits = np.iinfo(dtype) if dtype in INTEGERS else None
    if limits is not None and not limits.min <= zeros.min() <= zeros.max() <= limits.max:
        raise table.buffer.error(f"a zero point of {table.role} is outside of {dtype}")
    return Quantization(scales, zeros, found.number(6, "i"))


def _unpacked(data: np.ndarray, count: int) -> np.ndarray:
    """Numbers of 4 bits, two in a byte, the first in the lower half, as int8."""
    pairs = np.stack([data & 15, data >> 4], -1).reshape(-1)[:count].astype(np.int8)
    return np.where(pairs > 7, pairs - 16, pairs).astype(np.int8)
