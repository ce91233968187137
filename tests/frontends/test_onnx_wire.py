"""The reader of the wire format: whatever the bytes are, the model is the one that protobuf reads, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import pytest
from breadth import examples
from google.protobuf.message import DecodeError
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.importer import open_model
from glow_mlir.frontends.onnx.models import wire
from glow_mlir.frontends.onnx.models.assumptions import assume
from glow_mlir.frontends.onnx.models.tensors import content_of

LEAST = 8
"""Bytes from which on these tests leave tensors where they are, so that models of a few bytes have large ones."""

NUMBERS = np.arange(1, 5, dtype=np.float32)


def model_with(*tensors: onnx.TensorProto, nodes: tuple[onnx.NodeProto, ...] = ()) -> onnx.ModelProto:
    """A model with those initializers."""
    graph = helper.make_graph(nodes, "graph", [], [], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def number(value: int) -> bytes:
    """A number of variable length."""
    return (bytes([value & 0x7F | 0x80]) + number(value >> 7)) if value > 0x7F else bytes([value])


def bytes_field(field: int, content: bytes) -> bytes:
    """A field that is bytes, text or a message."""
    return number(field << 3 | 2) + number(len(content)) + content


def around(tensor: bytes) -> bytes:
    """A serialized model with one initializer of those bytes."""
    model = model_with().SerializeToString()
    return model + bytes_field(7, bytes_field(5, tensor))


def tensors_of(message: Any) -> Iterator[onnx.TensorProto]:
    """All tensors in a message, in order."""
    for field, value in message.ListFields():
        for inner in value if getattr(field, "is_repeated", True) and not hasattr(value, "DESCRIPTOR") else [value]:
            if isinstance(inner, onnx.TensorProto):
                yield inner
            elif hasattr(inner, "ListFields"):
                yield from tensors_of(inner)


def without_content(model: onnx.ModelProto) -> bytes:
    """What is in a model beside the content of its tensors."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in tensors_of(copy):
        for field in ("raw_data", "float_data", "double_data", "data_location", "external_data"):
            tensor.ClearField(field)
    copy.DiscardUnknownFields()
    return copy.SerializeToString(deterministic=True)


def compare(data: bytes) -> bool:
    """Whether a model is read, and has to be what protobuf makes of it."""
    try:
        with patch.object(wire, "MIN_LEFT", LEAST):
            ours = open_model(data)
    except ModelError:
        return False
    theirs = onnx.ModelProto.FromString(data)
    assume(theirs, is_own=True)  # What is mended is none of the reader's.
    assert without_content(ours.proto) == without_content(theirs)
    for mine, other in zip(tensors_of(ours.proto), tensors_of(theirs), strict=True):
        try:
            array = ours.tensors.array(mine, "it")
        except ModelError:
            continue
        expected = numpy_helper.to_array(other)
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
        # Text is objects, whose bytes are where they lie.
        assert array.tolist() == expected.tolist() if array.dtype == object else array.tobytes() == expected.tobytes()
    return True


def read(data: bytes) -> np.ndarray:
    """The only tensor of a model."""
    with patch.object(wire, "MIN_LEFT", LEAST):
        model = open_model(data)
    (tensor,) = tensors_of(model.proto)
    return model.tensors.array(tensor, "it")


FIELDS = {"float_data": NUMBERS.tolist(), "double_data": NUMBERS.tolist(), "int32_data": [5, 6], "int64_data": [7, 8]}
KINDS = ("FLOAT", "DOUBLE", "INT32", "INT64", "UINT64", "FLOAT16", "COMPLEX64", "STRING", "UNDEFINED")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("field", [*FIELDS, "raw_data"])
def test_content_is_what_the_element_type_says(kind: str, field: str) -> None:
    """A tensor of integers has none of its elements among the floats."""
    tensor = TensorProto(name="w", data_type=TensorProto.DataType.Value(kind))
    if field == "raw_data":
        tensor.raw_data = NUMBERS.tobytes()
    else:
        getattr(tensor, field).extend(FIELDS[field])
    for size in (1, 2, 4, 8):
        del tensor.dims[:]
        tensor.dims.append(size)
        assert compare(model_with(tensor).SerializeToString())


def test_location_that_is_written_out_is_read() -> None:
    """Whoever saves a model after its external data was loaded writes the location, which is behind the content."""
    tensor = numpy_helper.from_array(NUMBERS, "w")
    tensor.data_location = TensorProto.DEFAULT
    np.testing.assert_array_equal(read(model_with(tensor).SerializeToString()), NUMBERS)


def test_content_of_another_kind_of_field_is_none() -> None:
    """The bytes before a number are not content of length -1."""
    head = TensorProto(name="long name", data_type=TensorProto.FLOAT, dims=[1]).SerializeToString()
    assert compare(around(head + number(4 << 3 | 5) + np.float32(3).tobytes()))
    assert compare(around(head + number(9 << 3) + number(1)))


def test_tensor_with_content_and_reference_keeps_the_reference() -> None:
    tensor = numpy_helper.from_array(NUMBERS, "w")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    with pytest.raises(ModelError, match="external data"):
        read(model_with(tensor).SerializeToString())


def test_segment_of_a_tensor_is_refused() -> None:
    tensor = numpy_helper.from_array(NUMBERS, "w")
    tensor.segment.begin = 1
    with pytest.raises(ModelError, match="it cannot be read"):
        read(model_with(tensor).SerializeToString())


def attribute_of(*tensors: onnx.TensorProto) -> bytes:
    """A model with a node whose attribute has its tensor in several pieces, which are one to protobuf."""
    pieces = b"".join(bytes_field(5, tensor.SerializeToString()) for tensor in tensors)
    node = bytes_field(4, b"Constant") + bytes_field(5, bytes_field(1, b"value") + pieces)
    return model_with().SerializeToString() + bytes_field(7, bytes_field(1, node))


def test_tensor_in_pieces_is_one_or_refused() -> None:
    head = TensorProto(data_type=TensorProto.FLOAT, dims=[4])
    raw, floats = TensorProto(raw_data=NUMBERS.tobytes()), TensorProto(float_data=NUMBERS)
    small = TensorProto(raw_data=b"1234", data_location=TensorProto.DEFAULT)
    for pieces in ((head, raw), (numpy_helper.from_array(NUMBERS), raw), (raw, small, head), (floats, head, floats)):
        assert compare(attribute_of(*pieces))
    full = numpy_helper.from_array(NUMBERS)
    for pieces in (
        (full, TensorProto(raw_data=b"1234")),
        (full, TensorProto(raw_data=b"1234", data_location=TensorProto.DEFAULT)),
    ):
        assert compare(attribute_of(*pieces))


@pytest.mark.parametrize(
    "length", [number(2**64 - 1), number(2**63), number(2**31), b"\xff" * 11 + b"\1", b"\xff" * 20]
)
def test_length_that_cannot_be_is_refused(length: bytes) -> None:
    head = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4]).SerializeToString()
    assert not compare(around(head + number(9 << 3 | 2) + length + NUMBERS.tobytes()))


@pytest.mark.parametrize("key", [b"\x02", b"\xca\x80\x80\x80\x80\x00", number(2**33 | 9 << 3 | 2)])
def test_field_that_cannot_be_is_refused(key: bytes) -> None:
    head = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4]).SerializeToString()
    assert not compare(around(head + key + number(16) + NUMBERS.tobytes()))


@pytest.mark.parametrize("levels", [10, 200, 5000])
def test_branches_inside_branches(levels: int, tmp_path: Path) -> None:
    """Protobuf reads graphs in one another up to some depth, and nobody further."""
    content = bytes_field(5, numpy_helper.from_array(NUMBERS, "w").SerializeToString())
    for _ in range(levels):
        node = bytes_field(4, b"If") + bytes_field(5, bytes_field(1, b"then_branch") + bytes_field(6, content))
        content = bytes_field(1, node)
    path = tmp_path / "m.onnx"
    path.write_bytes(model_with().SerializeToString() + bytes_field(7, content))
    assert compare(bytes(content_of(path))) == (levels < 30)


def sample() -> bytes:
    """A model with tensors of several kinds, in a list, an attribute, a branch, and a sparse one."""
    branch = helper.make_graph([], "b", [], [], [helper.make_tensor("f", TensorProto.FLOAT, [4], NUMBERS)])
    nodes = (
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.arange(3), "a")),
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
    )
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(NUMBERS, "s"), numpy_helper.from_array(np.arange(4), "i"), [9]
    )
    tensors = (
        numpy_helper.from_array(NUMBERS, "w"),
        helper.make_tensor("d", TensorProto.DOUBLE, [2], [1.0, 2.0]),
        TensorProto(name="t", data_type=TensorProto.STRING, dims=[1], string_data=[b"eight letters"]),
        helper.make_tensor("h", TensorProto.FLOAT16, [2], [1.0, 2.0]),
    )
    model = model_with(*tensors, nodes=nodes)
    model.graph.sparse_initializer.append(sparse)
    return model.SerializeToString()


SAMPLE = sample()


def test_sample_is_read() -> None:
    with patch.object(wire, "MIN_LEFT", LEAST):
        assert wire.without_tensors(memoryview(SAMPLE)) != SAMPLE
    assert compare(SAMPLE)


EDIT = st.tuples(st.integers(0, len(SAMPLE)), st.integers(0, 3), st.binary(max_size=12))
"""Where bytes are removed, how many, and what takes their place."""


@settings(max_examples=examples(1500), deadline=2000)
@given(edits=st.lists(EDIT, min_size=1, max_size=4), end=st.integers(0, 2 * len(SAMPLE)))
def test_damaged_bytes_give_what_protobuf_reads_or_an_error(edits: list[tuple[int, int, bytes]], end: int) -> None:
    data = SAMPLE
    for place, removed, added in edits:
        data = data[:place] + added + data[place + removed :]
    compare(data[:end])


PIECE = st.sampled_from([SAMPLE[begin : begin + 20] for begin in range(0, len(SAMPLE), 5)]) | st.binary(max_size=20)


@settings(max_examples=examples(500), deadline=2000)
@given(pieces=st.lists(PIECE, max_size=20))
def test_any_bytes_give_what_protobuf_reads_or_an_error(pieces: list[bytes]) -> None:
    compare(b"".join(pieces))


FIELD = st.one_of(
    st.tuples(st.sampled_from([2, 14]), st.integers(0, 20)).map(lambda item: number(item[0] << 3) + number(item[1])),
    st.tuples(st.sampled_from([1, 4, 5, 7, 9, 10, 13]), st.binary(max_size=24)).map(lambda item: bytes_field(*item)),
    st.sampled_from([4, 9]).map(lambda field: number(field << 3 | 5) + b"\0\0\x80?"),
    st.just(bytes_field(4, NUMBERS.tobytes())),
    st.just(bytes_field(9, NUMBERS.tobytes())),
    st.just(number(1 << 3) + number(4)),
)


@settings(max_examples=examples(500), deadline=2000)
@given(fields=st.lists(FIELD, max_size=6))
@example(fields=[b"p\x01", b"j\x00"]).via("an entry of external data without a key")
def test_tensors_of_any_fields_are_read_as_protobuf_does(fields: list[bytes]) -> None:
    compare(around(b"".join(fields)))


def test_protobuf_refuses_what_is_no_message() -> None:
    """What the comparison rests on."""
    with pytest.raises(DecodeError):
        onnx.ModelProto.FromString(SAMPLE[:-1])
