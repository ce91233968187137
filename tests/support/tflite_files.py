"""TensorFlow Lite files for tests: a writer of flatbuffers, and models of some tensors and operators."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from glow_mlir.frontends.tflite.builtins import BUILTINS
from glow_mlir.frontends.tflite.file import TYPES
from glow_mlir.support.dataclass import dataclass

Fields = Mapping[int, Any]
"""Number of a field → a scalar as (code of `struct`, number), a string, an array, a table, or a list of tables."""

NUMBERS = {name: number for number, name in TYPES.items()}

OPTIONS = {
    **{"CONV_2D": 1, "DEPTHWISE_CONV_2D": 2, "AVERAGE_POOL_2D": 5, "MAX_POOL_2D": 5, "L2_POOL_2D": 5, "SVDF": 6},
    **{"FULLY_CONNECTED": 8, "SOFTMAX": 9, "CONCATENATION": 10, "ADD": 11, "L2_NORMALIZATION": 12, "LSTM": 14},
    **{"RESIZE_BILINEAR": 15, "RESHAPE": 17, "SPACE_TO_DEPTH": 19, "MUL": 21, "PAD": 22, "GATHER": 23},
    **{"BATCH_TO_SPACE_ND": 24, "SPACE_TO_BATCH_ND": 25, "TRANSPOSE": 26, "SUB": 28, "DIV": 29, "STRIDED_SLICE": 32},
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL"), 27),
    **{"TOPK_V2": 34, "LOG_SOFTMAX": 36, "CAST": 37, "DEQUANTIZE": 38, "MAXIMUM": 39, "MINIMUM": 39, "ARG_MAX": 40},
    **{"PADV2": 43, "TRANSPOSE_CONV": 49, "TILE": 51, "SHAPE": 55, "POW": 56, "ARG_MIN": 57, "PACK": 59, "ONE_HOT": 61},
    **{"UNPACK": 64, "FLOOR_DIV": 65, "ZEROS_LIKE": 67, "FILL": 68, "UNIDIRECTIONAL_SEQUENCE_LSTM": 71},
    **{"FLOOR_MOD": 72, "RANGE": 73, "RESIZE_NEAREST_NEIGHBOR": 74, "LEAKY_RELU": 75, "SQUARED_DIFFERENCE": 76},
    **{"MIRROR_PAD": 77, "REVERSE_V2": 81, "ADD_N": 82, "GATHER_ND": 83, "RANK": 86, "REVERSE_SEQUENCE": 87},
    **{"QUANTIZE": 89, "HARD_SWISH": 91, "IF": 92, "WHILE": 93, "DEPTH_TO_SPACE": 94, "SCATTER_ND": 97},
    **{"BATCH_MATMUL": 101, "CUMSUM": 102, "BROADCAST_TO": 104, "CONV_3D": 106, "CONV_3D_TRANSPOSE": 106, "GELU": 116},
    **{"DYNAMIC_UPDATE_SLICE": 117, "ATAN2": 122, "SIGN": 123, "BITCAST": 124, "BITWISE_XOR": 125, "RIGHT_SHIFT": 126},
    **{
        "LOCAL_RESPONSE_NORMALIZATION": 13,
        "ABS": 78,
        "NEG": 42,
        "SPLIT": 35,
        "SPLIT_V": 79,
        "CALL_ONCE": 103,
        "VAR_HANDLE": 111,
    },
}
"""Operator → the number of its options in the union of all options."""


VERSIONS = {"BROADCAST_TO": 2}
"""Operator → the version that is written, if it is not 1."""


class _Writer:
    """A table is written behind its fields' offsets, and what it refers to behind it."""

    def __init__(self) -> None:
        self.data = bytearray()

    def _align(self, size: int, behind: int = 0) -> None:
        self.data += bytes(-(len(self.data) + behind) % size)

    def item(self, value: Any) -> int:
        """Write a table, string or vector; returns its position."""
        if isinstance(value, Mapping):
            return self.table(value)
        if isinstance(value, list):
            return self._tables(value)
        if isinstance(value, str):
            data = value.encode()
            self._align(4)
            start = len(self.data)
            self.data += struct.pack("<I", len(data)) + data + b"\0"
            return start
        array = np.ascontiguousarray(value)
        self._align(4)
        self._align(max(4, array.dtype.itemsize), behind=4)
        start = len(self.data)
        self.data += struct.pack("<I", array.size) + array.tobytes()
        return start

    def _tables(self, tables: Sequence[Fields]) -> int:
        self._align(4)
        start = len(self.data)
        self.data += struct.pack("<I", len(tables)) + bytes(4 * len(tables))
        for number, table in enumerate(tables):
            self._refer(start + 4 + 4 * number, table)
        return start

    def _refer(self, position: int, value: Any) -> None:
        struct.pack_into("<I", self.data, position, self.item(value) - position)

    def table(self, fields: Fields) -> int:
        """Write a table; returns its position."""
        count = max(fields, default=-1) + 1
        self._align(8)
        vtable = len(self.data)
        self.data += bytes(-(-(4 + 2 * count) // 8) * 8 + 4)
        self.data += bytes(4)  # Where fields of 8 bytes are aligned.
        start = len(self.data) - 4
        children: list[tuple[int, Any]] = []
        for number, value in sorted(fields.items()):
            code = value[0] if isinstance(value, tuple) else "I"
            self._align(struct.calcsize(code))
            struct.pack_into("<H", self.data, vtable + 4 + 2 * number, len(self.data) - start)
            if isinstance(value, tuple):
                self.data += struct.pack(f"<{code}", value[1])
            else:
                children.append((len(self.data), value))
                self.data += bytes(4)
        struct.pack_into("<i", self.data, start, start - vtable)
        struct.pack_into("<HH", self.data, vtable, 4 + 2 * count, len(self.data) - start)
        for position, value in children:
            self._refer(position, value)
        return start


def flatbuffer(root: Fields, identifier: bytes = b"TFL3") -> bytes:
    """The bytes of a flatbuffer."""
    writer = _Writer()
    writer.data += bytes(4) + identifier
    struct.pack_into("<I", writer.data, 0, writer.table(root))
    return bytes(writer.data)


@dataclass(frozen=True)
class TensorCase:
    """
    A tensor: its shape, dtype, values if it is a constant, and scales and zero points if it is quantized.

    Values of a variable are kept from call to call. An input is within `bounds`, if it has any.
    """

    shape: Sequence[int]
    dtype: str = "float32"
    values: np.ndarray | None = None
    scales: Sequence[float] = ()
    zeros: Sequence[int] = ()
    axis: int = 0
    free: Sequence[int] = ()
    """The axes that are free in the signature of the shape."""
    bounds: tuple[float, float] | None = None
    is_variable: bool = False


@dataclass(frozen=True)
class OperatorCase:
    """
    An operator: numbers of its tensors, and the fields of its options.

    The kind of a custom one is `CUSTOM NAME`, and its options are bytes.
    """

    kind: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: Fields | None = None
    custom: bytes = b""
    intermediates: Sequence[int] = ()


@dataclass(frozen=True)
class GraphCase:
    """A graph: its tensors and operators, and the numbers of the tensors that are inputs and outputs."""

    tensors: Sequence[TensorCase]
    operators: Sequence[OperatorCase]
    inputs: Sequence[int]
    outputs: Sequence[int]


@dataclass(frozen=True)
class SignatureCase:
    """A signature of a graph: names of inputs and of outputs, by the number of the tensor."""

    key: str
    graph: int
    inputs: Mapping[int, str]
    outputs: Mapping[int, str]

    def fields(self) -> Fields:
        """Its table."""
        maps = [[{0: name, 1: ("I", number)} for number, name in own.items()] for own in (self.inputs, self.outputs)]
        return {0: maps[0], 1: maps[1], 2: self.key, 4: ("I", self.graph)}


def tflite_model(
    tensors: Sequence[TensorCase], operators: Sequence[OperatorCase], inputs: Sequence[int], outputs: Sequence[int]
) -> bytes:
    """The bytes of a model with one graph; tensor N is called tN."""
    return tflite_file([GraphCase(tensors, operators, inputs, outputs)])


def tflite_file(
    graphs: Sequence[GraphCase],
    signatures: Sequence[SignatureCase] = (),
    metadata: Mapping[str, bytes] | None = None,
) -> bytes:
    """The bytes of a model; tensor N of each graph is called tN."""
    kinds = list(dict.fromkeys(item.kind for graph in graphs for item in graph.operators))
    buffers: list[Fields] = [{}]
    described: list[Fields] = []
    for name, content in (metadata or {}).items():
        described.append({0: name, 1: ("I", len(buffers))})
        buffers.append({0: np.frombuffer(content, np.uint8)})
    listed = [
        {
            0: [_tensor(item, number, buffers) for number, item in enumerate(graph.tensors)],
            1: np.array(graph.inputs, np.int32),
            2: np.array(graph.outputs, np.int32),
            3: [_operator(item, kinds) for item in graph.operators],
            4: "main",
        }
        for graph in graphs
    ]
    root: dict[int, Any] = {0: ("I", 3), 1: [_code(kind) for kind in kinds], 2: listed, 3: "of a test", 4: buffers}
    if described:
        root[6] = described
    if signatures:
        root[7] = [item.fields() for item in signatures]
    return flatbuffer(root)


def _tensor(item: TensorCase, number: int, buffers: list[Fields]) -> Fields:
    """The table of a tensor; the values of a constant go to the buffers."""
    own: dict[int, Any] = {0: np.array(item.shape, np.int32), 1: ("b", NUMBERS[item.dtype]), 3: f"t{number}"}
    if item.values is not None:
        own[2] = ("I", len(buffers))
        buffers.append({0: np.frombuffer(item.values.tobytes(), np.uint8)})
    if item.is_variable:
        own[5] = ("?", True)
    if item.scales:
        zeros = np.array(item.zeros or [0] * len(item.scales), np.int64)
        own[4] = {2: np.array(item.scales, np.float32), 3: zeros, 6: ("i", item.axis)}
    if item.free:
        own[7] = np.array([-1 if axis in item.free else size for axis, size in enumerate(item.shape)], np.int32)
    return own


def _operator(item: OperatorCase, kinds: Sequence[str]) -> Fields:
    fields: dict[int, Any] = {
        0: ("I", kinds.index(item.kind)),
        1: np.array(item.inputs, np.int32),
        2: np.array(item.outputs, np.int32),
    }
    if item.options is not None:
        fields |= {3: ("B", OPTIONS[item.kind]), 4: item.options}
    if item.intermediates:
        fields[8] = np.array(item.intermediates, np.int32)
    if item.custom:
        fields[5] = np.frombuffer(item.custom, np.uint8)
    return fields


def _code(kind: str) -> Fields:
    """The table of a kind of operators."""
    builtin, _, name = kind.partition(" ")
    number = BUILTINS.index(builtin)
    fields: dict[int, Any] = {0: ("b", min(number, 127)), 3: ("i", number), 2: ("i", VERSIONS.get(kind, 1))}
    return fields | ({1: name} if name else {})
