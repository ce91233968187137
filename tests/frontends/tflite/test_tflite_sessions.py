"""Sessions of TensorFlow Lite models: bytes, free axes, entries, metadata, and what is refused."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import run_tool
from tflite_files import (
    GraphCase,
    OperatorCase,
    SignatureCase,
    TensorCase,
    flatbuffer,
    tflite_file,
    tflite_model,
)

from glow_mlir import GlowError, InferenceSession
from glow_mlir.api.bundles import bundle_of
from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.errors import ModelError
from glow_mlir.frontends.tflite import sparsity
from glow_mlir.frontends.tflite.file import TfliteFile
from glow_mlir.tools import glow_run

RANDOM = np.random.default_rng(3)
FILTERS = RANDOM.standard_normal((4, 3, 3, 2)).astype(np.float32)
BIAS = RANDOM.standard_normal(4).astype(np.float32)
WEIGHTS = RANDOM.standard_normal((5, 36)).astype(np.float32)
BATCH = (0,)


def free_batch() -> bytes:
    """A network of an image of a free batch, which the file has as 1, with a matrix product and a mean as outputs."""
    tensors = [
        TensorCase((1, 5, 6, 2), free=BATCH),
        TensorCase(FILTERS.shape, values=FILTERS),
        TensorCase((4,), values=BIAS),
        TensorCase((1, 3, 3, 4), free=BATCH),
        TensorCase((2,), "int32", np.array([-1, 36], np.int32)),
        TensorCase((1, 36), free=BATCH),
        TensorCase(WEIGHTS.shape, values=WEIGHTS),
        TensorCase((1, 5), free=BATCH),
        TensorCase((2,), "int32", np.array([1, 2], np.int32)),
        TensorCase((1, 4), free=BATCH),
    ]
    window = {0: ("b", 0), 1: ("i", 2), 2: ("i", 2), 3: ("b", 3)}
    operators = [
        OperatorCase("CONV_2D", (0, 1, 2), (3,), window),
        OperatorCase("RESHAPE", (3, 4), (5,)),
        OperatorCase("FULLY_CONNECTED", (5, 6, -1), (7,), {0: ("b", 0)}),
        OperatorCase("MEAN", (3, 8), (9,), {}),
    ]
    return tflite_model(tensors, operators, (0,), (7, 9))


def resized(model: bytes, image: np.ndarray) -> list[np.ndarray]:
    """What LiteRT's reference kernels compute behind `resize_tensor_input`."""
    litert: Any = pytest.importorskip("ai_edge_litert.interpreter")
    kernels = litert.OpResolverType.BUILTIN_REF
    theirs = litert.Interpreter(model_content=model, experimental_op_resolver_type=kernels)
    (detail,) = theirs.get_input_details()
    theirs.resize_tensor_input(detail["index"], image.shape)
    theirs.allocate_tensors()
    theirs.set_tensor(detail["index"], image)
    theirs.invoke()
    return [theirs.get_tensor(item["index"]) for item in theirs.get_output_details()]


def images(batch: int) -> np.ndarray:
    return RANDOM.standard_normal((batch, 5, 6, 2)).astype(np.float32)


def test_a_free_batch_has_the_size_of_the_call() -> None:
    session = InferenceSession(free_batch(), threads=1)
    assert [item.shape for item in session.get_inputs()] == [[None, 5, 6, 2]]
    assert [item.shape for item in session.get_outputs()] == [[None, 5], [None, 4]]
    alone = InferenceSession(free_batch(), threads=1, dimensions={"t0.0": 1})
    assert [item.shape for item in alone.get_inputs()] == [[1, 5, 6, 2]]
    bounded = InferenceSession(free_batch(), threads=1, dimensions={"t0.0": (1, 4)})
    x = images(3)
    rows = [alone.run(None, {"t0": row[None]}) for row in x]
    for own in (session, bounded):
        for found, wanted in zip(own.run(None, {"t0": x}), zip(*rows, strict=True), strict=True):
            np.testing.assert_allclose(found, np.concatenate(wanted), rtol=1e-5, atol=1e-5)


@pytest.mark.extra
def test_a_free_batch_is_that_of_litert() -> None:
    session = InferenceSession(free_batch(), threads=1)
    for batch in (1, 4):
        x = images(batch)
        for found, wanted in zip(session.run(None, {"t0": x}), resized(free_batch(), x), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=0, atol=3e-6 * float(np.abs(wanted).max()))


@pytest.mark.parametrize("kind", ["FILL", "BROADCAST_TO", "RESHAPE"])
def test_shapes_that_a_model_computes_follow_the_batch(kind: str) -> None:
    """The first size of a shape is that of the input, as Keras' layers write it."""
    scalar, tensors = TensorCase((), "int32"), [TensorCase((1, 2, 3), free=BATCH), TensorCase((3,), "int32")]
    tensors += [TensorCase((1,), "int32", np.array([item], np.int32)) for item in (0, 1, 1)]
    number, row = np.array(2.5, np.float32), np.arange(6, dtype=np.float32)[None]
    tensors += [scalar, TensorCase((), "int32", np.array(6, np.int32)), TensorCase((2,), "int32")]
    tensors += [TensorCase((), values=number), TensorCase((1, 6), values=row), TensorCase((1, 6), free=BATCH)]
    operators = [
        OperatorCase("SHAPE", (0,), (1,), {0: ("b", 2)}),
        OperatorCase("STRIDED_SLICE", (1, 2, 3, 4), (5,), {4: ("i", 1)}),
        OperatorCase("PACK", (5, 6), (7,), {0: ("i", 2)}),
        OperatorCase(kind, {"FILL": (7, 8), "BROADCAST_TO": (9, 7), "RESHAPE": (0, 7)}[kind], (10,), {}),
    ]
    session = InferenceSession(tflite_model(tensors, operators, (0,), (10,)), threads=1)
    for batch in (1, 3):
        x = RANDOM.standard_normal((batch, 2, 3)).astype(np.float32)
        wanted = {"FILL": np.full((batch, 6), number), "BROADCAST_TO": row.repeat(batch, 0), "RESHAPE": x}[kind]
        np.testing.assert_array_equal(session.run(None, {"t0": x})[0], wanted.reshape(batch, 6))


def test_sizes_that_no_axis_has_are_refused() -> None:
    with pytest.raises(GlowError, match=r"no free dimension 'n'.*free dimensions: 't0\.0'"):
        InferenceSession(free_batch(), dimensions={"n": 2})


def test_bounds_that_an_operator_cannot_take_are_refused() -> None:
    scales: dict[str, Any] = {"scales": [0.5], "zeros": [0]}
    tensors = [
        TensorCase((1, 4), "int8", free=BATCH, **scales),
        TensorCase((1,), "int32", np.array([0], np.int32)),
        TensorCase((4,), "int8", **scales),
    ]
    data = tflite_model(tensors, [OperatorCase("MEAN", (0, 1), (2,), {})], (0,), (2,))
    with pytest.raises(GlowError, match="MEAN does not support sizes known only at run time"):
        InferenceSession(data, threads=1, dimensions={"t0.0": (1, 4)})


def two_graphs() -> bytes:
    """An encoder and a decoder, whose inputs have the same name and different shapes."""
    graphs = [
        GraphCase([TensorCase((3,)), TensorCase((3,))], [OperatorCase("RELU", (0,), (1,))], (0,), (1,)),
        GraphCase([TensorCase((2, 2)), TensorCase((2, 2))], [OperatorCase("NEG", (0,), (1,))], (0,), (1,)),
    ]
    signatures = [SignatureCase("encode", 0, {0: "x"}, {1: "y"}), SignatureCase("decode", 1, {0: "x"}, {1: "y"})]
    return tflite_file(graphs, signatures)


def test_signatures_are_entries(tmp_path: Path) -> None:
    path = tmp_path / "two.tflite"
    path.write_bytes(two_graphs())
    x = RANDOM.standard_normal((2, 2)).astype(np.float32)
    session = InferenceSession(path, entry="decode", threads=1)
    assert [(item.name, item.shape) for item in session.get_inputs()] == [("x", [2, 2])]
    np.testing.assert_array_equal(session.run(["y"], {"x": x})[0], -x)
    session = InferenceSession(path, entry="encode", threads=1)
    np.testing.assert_array_equal(session.run(["y"], {"x": x[0, :1].repeat(3)})[0], x[0, :1].repeat(3).clip(0))


def test_one_of_several_signatures_has_to_be_chosen() -> None:
    with pytest.raises(GlowError, match=r"no entry 'main'.*encode, decode"):
        InferenceSession(two_graphs(), threads=1)


def test_entries_share_variables(tmp_path: Path) -> None:
    """`put` assigns what `get` reads, whose first value is that of the graph that is called once."""
    handle, numbers, name = TensorCase((), "resource"), TensorCase((2,)), {1: "v"}
    once, put, get = ({0: ("i", 2)}, {1: "v"}, {1: "v"})
    first = TensorCase((2,), values=np.array([5, 6], np.float32))
    graphs = [
        GraphCase(
            [handle, numbers],
            [
                OperatorCase("CALL_ONCE", (), (), once),
                OperatorCase("VAR_HANDLE", (), (0,), get),
                OperatorCase("READ_VARIABLE", (0,), (1,)),
            ],
            (),
            (1,),
        ),
        GraphCase(
            [handle, numbers, numbers],
            [
                OperatorCase("VAR_HANDLE", (), (0,), put),
                OperatorCase("ASSIGN_VARIABLE", (0, 1), ()),
                OperatorCase("NEG", (1,), (2,)),
            ],
            (1,),
            (2,),
        ),
        GraphCase(
            [handle, first],
            [OperatorCase("VAR_HANDLE", (), (0,), name), OperatorCase("ASSIGN_VARIABLE", (0, 1), ())],
            (),
            (),
        ),
    ]
    signatures = [SignatureCase("get", 0, {}, {1: "y"}), SignatureCase("put", 1, {1: "x"}, {2: "negative"})]
    path = tmp_path / "variables.tflite"
    path.write_bytes(tflite_file(graphs, signatures))
    session = InferenceSession(path, entry="get", threads=1).compiled
    np.testing.assert_array_equal(session.run({})["y"], [5, 6])
    session.run({"x": np.array([1, 2], np.float32)}, entry="put")
    np.testing.assert_array_equal(session.run({})["y"], [1, 2])


def test_a_bundle_has_all_entries_and_the_sizes_of_the_file() -> None:
    options = CompileOptions("cpu", fields={"threads": 1})
    names = [item.name for item in bundle_of({"": two_graphs()}, "two", options).artifact.manifest.entries]
    assert names == ["two_encode_call", "two_decode_call"]
    for dimensions, batch in (({}, 1), ({"t0.0": 4}, 4)):
        options = CompileOptions("cpu", dimensions=dimensions, fields={"threads": 1})
        (entry,) = bundle_of({"": free_batch()}, "free", options).artifact.manifest.entries
        assert [binding.shape[0] for binding in entry.bindings] == [batch] * 3


def with_labels() -> bytes:
    """A model with metadata, and labels in the archive behind it."""
    described = flatbuffer({0: "birds", 1: "Names birds.", 2: "v2", 4: "A. N. Other"}, b"M001")
    graph = GraphCase([TensorCase((3,)), TensorCase((3,))], [OperatorCase("RELU", (0,), (1,))], (0,), (1,))
    model = tflite_file([graph], metadata={"min_runtime_version": b"1.5.0\0\0", "TFLITE_METADATA": described})
    stream = io.BytesIO(model)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("labels.txt", "tit\nwren\nrobin\n")
        archive.writestr("icon.png", b"\x89PNG\x00\xff")
    return stream.getvalue()


def test_metadata_and_labels(tmp_path: Path) -> None:
    path = tmp_path / "birds.tflite"
    path.write_bytes(with_labels())
    for model in (path, with_labels()):
        found = InferenceSession(model, threads=1).get_modelmeta()
        assert (found.graph_name, found.description) == ("birds", "Names birds.")
        assert dict(found.custom_metadata_map) == {
            "min_runtime_version": "1.5.0",
            "version": "v2",
            "author": "A. N. Other",
            "labels.txt": "tit\nwren\nrobin\n",
        }


def test_glow_run_names_classes(tmp_path: Path) -> None:
    (tmp_path / "birds.tflite").write_bytes(with_labels())
    np.save(tmp_path / "x.npy", np.array([1, 3, 2], np.float32))
    argv = ["birds.tflite", "--input", "t0=x.npy"]
    ran = run_tool(glow_run.main, argv, program="glow-run", directory=tmp_path)
    assert b"top 3 of t1: 1 wren: 3, 2 robin: 2, 0 tit: 1" in ran.stdout


def test_a_damaged_archive_is_named() -> None:
    data = bytearray(with_labels())
    begin = data.index(b"PK\3\4")
    data[begin + 26 : begin + 28] = b"\xff\xff"
    with pytest.raises(ModelError, match="the archive behind the model is damaged"):
        InferenceSession(bytes(data), threads=1).get_modelmeta()


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"gone\.tflite: cannot be read: No such file"):
        InferenceSession(tmp_path / "gone.tflite")


REFUSED = {
    "CUSTOM ethos-u": (TensorCase((2,)), "CUSTOM ethos-u is not supported.*Vela"),
    "CUSTOM Mystery": (TensorCase((2,)), "CUSTOM Mystery is not supported.*package"),
    "HASHTABLE_FIND": (TensorCase((2,)), "HASHTABLE_FIND is not supported.*look up"),
    "RESHAPE": (TensorCase((2,), "string"), "RESHAPE: 't1' has strings"),
}
"""Operator → the tensor that it has beside floats, and the error."""


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_is_refused_in_a_line(kind: str) -> None:
    other, words = REFUSED[kind]
    operators = [OperatorCase(kind, (0,), (1,)), OperatorCase("RELU", (1,), (2,))]
    with pytest.raises(GlowError, match=words) as caught:
        InferenceSession(tflite_model([TensorCase((2,)), other, TensorCase((2,))], operators, (0,), (2,)))
    assert "\n" not in str(caught.value)


def test_the_sum_of_sparse_constants_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparsity, "MAX_ELEMENTS", 10)
    level = {1: ("i", 4)}
    fields = {0: np.array([0], np.int32), 2: [level]}
    tensor = {0: np.array([4], np.int32), 1: ("b", 0), 2: ("I", 1), 3: "t", 6: fields}
    buffers = [{}, {0: np.frombuffer(np.ones(4, np.float32).tobytes(), np.uint8)}]
    for count, is_refused in ((2, False), (3, True)):
        data = flatbuffer({0: ("I", 3), 2: [{0: [tensor] * count}], 4: buffers})
        if not is_refused:
            assert len(TfliteFile.of(memoryview(data)).subgraphs[0].tensors) == count
            continue
        with pytest.raises(GlowError, match="more than 10 elements in dense form"):
            TfliteFile.of(memoryview(data))
