"""Large tensors of ONNX models: they stay in the file, and are the same as if they had been parsed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx_models import model_of, node, refusal, value

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_high.storage import ConstantOp
from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.frontends.onnx.importer import import_model, open_model
from glow_mlir.frontends.onnx.models.wire import MIN_LEFT, without_tensors
from glow_mlir.interpreter.machine import run_function

SIDE = 160
X = np.random.default_rng(0).normal(size=(2, SIDE)).astype(np.float32)
MATRICES = np.random.default_rng(1).normal(size=(3, SIDE, SIDE)).astype(np.float32)
assert MATRICES[0].nbytes > MIN_LEFT


def branch(name: str, matrix: onnx.TensorProto) -> onnx.GraphProto:
    result = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, (2, SIDE))
    return helper.make_graph([helper.make_node("MatMul", ["x", name], [f"{name}_y"])], name, [], [result], [matrix])


def float_data(name: str, array: np.ndarray) -> onnx.TensorProto:
    """A tensor whose elements are a list of numbers."""
    return helper.make_tensor(name, TensorProto.FLOAT, array.shape, array.reshape(-1).tolist())


def nested_model() -> onnx.ModelProto:
    """A model with a large initializer, a large attribute, and one in each branch of a choice."""
    first, second, third = MATRICES
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"]),
        helper.make_node("Constant", [], ["second"], value=numpy_helper.from_array(second)),
        helper.make_node("MatMul", ["a", "second"], ["b"]),
        helper.make_node(
            "If",
            ["c"],
            ["d"],
            then_branch=branch("third", float_data("third", third)),
            else_branch=branch("other", numpy_helper.from_array(first, "other")),
        ),
        helper.make_node("Add", ["b", "d"], ["y"]),
    ]
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, X.shape)
    constants = [numpy_helper.from_array(first, "first"), numpy_helper.from_array(np.array(True), "c")]
    graph = helper.make_graph(nodes, "graph", [value], [result], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


EXPECTED = X @ MATRICES[0] @ MATRICES[1] + X @ MATRICES[2]


@pytest.mark.parametrize("form", ["path", "bytes", "message"])
def test_large_tensors_are_read_wherever_they_are(form: str, tmp_path: Path) -> None:
    model, path = nested_model(), tmp_path / "m.onnx"
    onnx.save(model, path)
    source = {"path": path, "bytes": model.SerializeToString(), "message": model}[form]
    results = run_function(import_model(source), {"x": X})
    np.testing.assert_allclose(results["y"], EXPECTED, rtol=1e-4, atol=1e-3)


def test_large_tensors_stay_in_the_file() -> None:
    data = nested_model().SerializeToString()
    short = without_tensors(memoryview(data))
    assert len(data) > 4 * MATRICES[0].nbytes
    assert len(short) < 2000
    opened = open_model(data)
    (first, _) = opened.proto.graph.initializer
    array = opened.tensors.array(first, "the first")
    np.testing.assert_array_equal(array, MATRICES[0])
    assert np.shares_memory(array, np.frombuffer(data, np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0


def test_models_without_large_tensors_stay_as_they_are() -> None:
    model = nested_model()
    del model.graph.node[1:], model.graph.initializer[:]
    data = model.SerializeToString()
    assert without_tensors(memoryview(data)) == data


def test_tensor_in_several_fields_is_left_to_the_parser() -> None:
    """Each chunk of a packed field is one field; only all of them together are the tensor."""
    chunk = onnx.TensorProto(float_data=[1.0] * MIN_LEFT).SerializeToString()
    tensor = onnx.TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[2 * MIN_LEFT]).SerializeToString()
    graph = b"\x2a" + varint(len(tensor) + 2 * len(chunk)) + tensor + 2 * chunk
    data = b"\x3a" + varint(len(graph)) + graph
    assert without_tensors(memoryview(data)) == data
    assert len(onnx.ModelProto.FromString(data).graph.initializer[0].float_data) == 2 * MIN_LEFT


def varint(value: int) -> bytes:
    return (bytes([value & 0x7F | 0x80]) + varint(value >> 7)) if value > 0x7F else bytes([value])


@pytest.mark.parametrize("cut", [1, 1000, 10**5, 3 * 10**5])
def test_file_that_is_cut_off_is_refused(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(nested_model().SerializeToString()[:-cut])
    with pytest.raises(ModelError, match="is not an ONNX model, or is cut off"):
        import_model(path)


@pytest.mark.parametrize("length", [SIDE * SIDE * 4 - 4, SIDE * SIDE * 4 + 1])
def test_content_of_the_wrong_size_is_refused(length: int) -> None:
    model = nested_model()
    model.graph.initializer[0].raw_data = bytes(length)
    with pytest.raises(ModelError, match="initializer 'first' cannot be read: it has"):
        import_model(model.SerializeToString())


def test_external_data_beyond_the_end_of_its_file_is_refused(tmp_path: Path) -> None:
    model, path = nested_model(), tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin")
    (tmp_path / "w.bin").write_bytes((tmp_path / "w.bin").read_bytes()[:1000])
    with pytest.raises(ModelError, match="cannot be read: the file has 1000 bytes"):
        import_model(path)


@pytest.mark.parametrize("name", [None, "", "\0"])
def test_external_data_in_a_file_without_a_name_is_refused(name: str | None, tmp_path: Path) -> None:
    """A reference to the model's own file is none that a model may have."""
    model, path = nested_model(), tmp_path / "m.onnx"
    tensor = TensorProto(name="c", data_type=TensorProto.BOOL, data_location=TensorProto.EXTERNAL)
    for key, content in (("location", name), ("length", "1")):
        if content is not None:
            tensor.external_data.add(key=key, value=content)
    model.graph.initializer[1].CopyFrom(tensor)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"'c' .*\(hint"):
        import_model(path)


@pytest.mark.parametrize("key", ["offset", "length"])
@pytest.mark.parametrize("value", ["abc", "", "9" * 5000])
def test_external_data_at_a_place_that_is_no_number_is_refused(key: str, value: str, tmp_path: Path) -> None:
    model, path = nested_model(), tmp_path / "m.onnx"
    (tmp_path / "w.bin").write_bytes(b"\1")
    tensor = TensorProto(name="c", data_type=TensorProto.BOOL, data_location=TensorProto.EXTERNAL)
    for each, text in (("location", "w.bin"), (key, value)):
        tensor.external_data.add(key=each, value=text)
    model.graph.initializer[1].CopyFrom(tensor)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"'c' .*its offset or length is '[abc9]*', which is not a number \(hint"):
        import_model(path)


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3000 + "b", "ä" * 200, f"{'a' * 300}/b"])
def test_external_data_in_a_file_that_cannot_be_is_refused(name: str, tmp_path: Path) -> None:
    """File systems allow 255 bytes for a name, and 4095 for a path. The error shows the start of the name."""
    model, path = nested_model(), tmp_path / "m.onnx"
    tensor = TensorProto(name="c", data_type=TensorProto.BOOL, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=name)
    model.graph.initializer[1].CopyFrom(tensor)
    path.write_bytes(model.SerializeToString())
    for use in (import_model, InferenceSession):
        with pytest.raises(ModelError, match=r"'c' cannot be read: .*\(hint"):
            use(path)


def test_external_data_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(nested_model(), path, save_as_external_data=True, location="w.bin")
    results = run_function(import_model(path), {"x": X})
    np.testing.assert_allclose(results["y"], EXPECTED, rtol=1e-4, atol=1e-3)


def test_equal_tensors_are_one_constant_however_they_are_named() -> None:
    model = nested_model()
    model.graph.node[1].attribute[0].t.CopyFrom(numpy_helper.from_array(MATRICES[0]))
    twins = [len(large_constants(model, by_content)) for by_content in (True, False)]
    assert twins == [2, 2]
    changed = MATRICES[0].copy()
    changed[77, 78] += 1
    model.graph.node[1].attribute[0].t.CopyFrom(numpy_helper.from_array(changed))
    assert [len(large_constants(model, by_content)) for by_content in (True, False)] == [3, 3]


def test_names_without_meaning_are_never_given_twice() -> None:
    model = nested_model()
    content = [set(large_constants(model, by_content=True)) for _ in range(2)]
    assert content[0] == content[1]
    places = [set(large_constants(model, by_content=False)) for _ in range(2)]
    assert not places[0] & places[1]


def large_constants(model: onnx.ModelProto, by_content: bool) -> list[str]:
    """The digests of the large constants of an imported model."""
    module = import_model(model, by_content=by_content)
    stored = [op for op in module.ops if isinstance(op, ConstantOp) and op.weights is not None]
    return [op.weights.data for op in stored if op.weights is not None and op.tensor_type.get_shape() == (SIDE, SIDE)]


def sparse_model(indices: np.ndarray, dims: tuple[int, ...] = (4, 3)) -> onnx.ModelProto:
    """A product with a sparse matrix, and a branch that adds a sparse vector."""
    matrix = onnx.SparseTensorProto(
        values=numpy_helper.from_array(np.array([1, 2, -3], np.float32), "w"),
        indices=numpy_helper.from_array(indices, "w_indices"),
        dims=dims,
    )
    vector = helper.make_sparse_tensor(
        numpy_helper.from_array(np.array([5], np.float32), "v"),
        helper.make_tensor("", TensorProto.INT64, [1], [2]),
        [3],
    )
    text = """<ir_version: 8, opset_import: ["": 17]> sparse (float[2, 4] x, bool c) => (float[2, 3] y) {
        a = MatMul (x, w)
        y = If (c) <
            then_branch = with () => (float[2, 3] b) { b = Add (a, v) },
            else_branch = without () => (float[2, 3] d) { d = Identity (a) }
        >
    }"""
    model = parser.parse_model(text)
    model.graph.sparse_initializer.append(matrix)
    model.graph.node[1].attribute[0].g.sparse_initializer.append(vector)
    return model


FLAT, BY_AXES = np.array([1, 5, 10]), np.array([[0, 1], [1, 2], [3, 1]])


@pytest.mark.parametrize("indices", [FLAT, BY_AXES], ids=["flat", "by axes"])
def test_sparse_weights_are_computed_with_as_dense_ones(indices: np.ndarray) -> None:
    x = X[:, :4]
    dense = np.zeros((4, 3), np.float32)
    dense[tuple(BY_AXES.T)] = 1, 2, -3
    for chosen in (True, False):
        (found,) = InferenceSession(sparse_model(indices), cache=False).run(None, {"x": x, "c": np.array(chosen)})
        np.testing.assert_allclose(found, x @ dense + chosen * np.array([0, 0, 5], np.float32), rtol=1e-5)


def test_a_constant_may_be_sparse() -> None:
    sparse = sparse_model(FLAT).graph.sparse_initializer[0]
    node = helper.make_node("Constant", [], ["y"], sparse_value=sparse)
    model = helper.make_model(helper.make_graph([node], "graph", [], [onnx.ValueInfoProto(name="y")]))
    (found,) = run_function(import_model(model), {}).values()
    np.testing.assert_array_equal(np.flatnonzero(found), FLAT)


@pytest.mark.parametrize(
    ("indices", "dims", "kind", "reason"),
    [
        (np.array([1, 5, 12]), (4, 3), ModelError, "its indices are invalid"),
        (np.array([1, -5, 10]), (4, 3), ModelError, "its indices are invalid"),
        (np.array([1, 5]), (4, 3), ModelError, "its indices are invalid"),
        (BY_AXES, (4, 2), ModelError, "its indices are invalid"),
        (FLAT, (1 << 20, 1 << 20), UnsupportedError, "is sparse, and of the shape"),
    ],
)
def test_sparse_weights_that_do_not_fit(
    indices: np.ndarray, dims: tuple[int, ...], kind: type[GlowError], reason: str
) -> None:
    assert reason in refusal(sparse_model(indices, dims), kind)


def test_sparse_weights_of_words_are_refused() -> None:
    model = sparse_model(FLAT)
    values = onnx.TensorProto(name="w", data_type=TensorProto.STRING, dims=[3], string_data=[b"a", b"b", b"c"])
    model.graph.sparse_initializer[0].values.CopyFrom(values)
    assert "initializer 'w' has the element type string, which is not supported" in refusal(model, UnsupportedError)


def test_packed_elements_take_as_many_bytes_as_they_need() -> None:
    model = parser.parse_model(
        """<ir_version: 11, opset_import: ["": 23]> packed (float x) => (float[5] y) {
            c = Cast <to = 1> (w)  y = Add (c, x)
        }"""
    )
    model.graph.initializer.append(onnx.TensorProto(name="w", data_type=TensorProto.INT4, dims=[5], raw_data=bytes(4)))
    assert "initializer 'w' cannot be read: it has 4 bytes instead of 3" in refusal(
        model.SerializeToString(), ModelError
    )


@pytest.mark.parametrize("values", [[0, 1, 20, 2**64 - 1], [2**64 - 1], [2**63, 5], [2**63 - 1, 0]])
def test_constants_have_the_largest_numbers(values: list[int]) -> None:
    array = np.array(values, np.uint64)
    given = numpy_helper.from_array(array, "w")
    model = model_of(
        [node("Identity", "w", "y"), node("Add", "w x", "z")], [value("x", 13, array.shape)], ["y", "z"], [given]
    )
    found = run_function(import_model(model), {"x": np.zeros_like(array)})
    assert found["y"].tolist() == found["z"].tolist() == values
