"""A damaged, contradictory or unsupported model gives one line that names file, node and reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx_models import FLOATS, message, model_of, node, refusal, value, weight
from xdsl.dialects.builtin import StringAttr

from glow_mlir import InferenceSession
from glow_mlir.errors import ExecutionError, GlowError, ModelError, OptionError, UnsupportedError
from glow_mlir.frontends.onnx import graph as onnx_graph
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.interpreter.machine import find_function, run_function


def external(name: str, location: str) -> onnx.TensorProto:
    """Four floats in the file `location`."""
    tensor = TensorProto(name=name, data_type=FLOATS, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


RELU = node("Relu", name="act")
CONTRADICTIONS: dict[str, tuple[onnx.ModelProto, str]] = {
    "cycle": (
        model_of([node("Add", "x b", "a", "first"), node("Relu", "a", "b", "second"), node("Relu", "b", "y")]),
        "node 'first': the graph has a cycle through 'first', 'second'",
    ),
    "missing operand": (
        model_of([node("Add", "x w", name="sum")]),
        "node 'sum': operand 'w' is neither an input, an initializer nor computed by a node",
    ),
    "missing output": (model_of([RELU], outputs=["y", "z"]), "output 'z' is computed by no node"),
    "input twice": (model_of([RELU], [value("x"), value("x")]), "input 'x' is listed twice"),
    "nameless input": (model_of([RELU], [value("x"), value("")]), "an input has no name"),
    "two nodes with one output": (
        model_of([RELU, node("Exp", name="other")]),
        "node 'other': output 'y' has the name of another value, of node 'act'",
    ),
    "node that computes an input": (
        model_of([node("Relu", "x", "x", "act")], outputs=["x"]),
        "node 'act': output 'x' has the name of another value, of an input or initializer",
    ),
    "absent operand": (
        model_of([helper.make_node("Add", ["x"], ["y"], "sum")]),
        "node 'sum': Add: operand 'right' is missing",
    ),
    "absent attribute": (model_of([node("Concat", name="join")]), "node 'join': Concat has no attribute 'axis'"),
    "attribute of another type": (
        model_of([node("Transpose", name="turn", perm="oops")]),
        "node 'turn': attribute 'perm' of Transpose is STRING, not INTS",
    ),
    "surplus operand": (
        model_of([node("Relu", "x x", name="act")]),
        "node 'act': Relu: glow_high.relu has 1 operands, got 2",
    ),
    "operands that do not fit": (
        model_of([node("Add", "x w", name="sum")], initializers=[weight("w", 1, 2, 3)]),
        "node 'sum': Add: shapes (2,), (3,) do not broadcast",
    ),
    "initializer that is too short": (
        model_of(
            [node("Add", "x w")],
            initializers=[TensorProto(name="w", data_type=FLOATS, dims=[2], raw_data=b"\0\0\0\0")],
        ),
        "initializer 'w' cannot be read",
    ),
    "blocks of no size": (
        model_of([node("SpaceToDepth", name="blocks", blocksize=0)], [value("x", shape=(1, 2, 4, 4))]),
        "node 'blocks': SpaceToDepth: Blocksize must be positive (hint: see https",
    ),
    "no parts": (
        model_of([node("Split", name="cut", num_outputs=0)]),
        "node 'cut': Split: 1 outputs cannot take 0 parts (hint: ",
    ),
    "more parts than outputs": (
        model_of([node("Split", name="cut", num_outputs=2**40)]),
        "node 'cut': Split: 1 outputs cannot take 1099511627776 parts (hint: ",
    ),
    "window that stays": (
        model_of(
            [node("MaxPool", name="pool", kernel_shape=[2], strides=[0], auto_pad="SAME_UPPER")],
            [value("x", shape=(1, 1, 4))],
        ),
        "node 'pool': MaxPool: Attribute strides must only contain positive values (hint: ",
    ),
    "window of too few axes": (
        model_of(
            [node("LpPool", name="pool", kernel_shape=[2], auto_pad="SAME_UPPER")], [value("x", shape=(1, 1, 4, 4))]
        ),
        "node 'pool': LpPool: Attribute kernel_shape has incorrect size (hint: ",
    ),
    "weights of too few axes": (
        model_of(
            [node("Conv", "x w", name="conv", auto_pad="SAME_UPPER")],
            [value("x", shape=(1, 1, 4, 4)), value("w", shape=(1, 1))],
        ),
        "node 'conv': Conv: an input of shape (1, 1, 4, 4) and weights of shape (1, 1) do not fit (hint: ",
    ),
    "recurrence that is a number": (
        model_of(
            [node("LSTM", "x w r", name="lstm", hidden_size=2)],
            [value("x", shape=(3, 1, 2)), value("w", shape=(1, 8, 2)), value("r", shape=())],
        ),
        "node 'lstm': LSTM: operand 2 has the shape () (hint: ",
    ),
    "slice of an axis that is not there": (
        model_of(
            [node("Slice", "x i i", name="cut")], initializers=[numpy_helper.from_array(np.zeros(2, np.int64), "i")]
        ),
        "node 'cut': Slice: shape (2,) has no axis 1 (hint: ",
    ),
    "initializer of a negative size": (
        model_of(
            [node("Add", "x w")], initializers=[TensorProto(name="w", data_type=FLOATS, dims=[-1], float_data=[1])]
        ),
        "initializer 'w' cannot be read: its shape is [-1] (hint: ",
    ),
    "external data in a file without a name": (
        model_of([node("Add", "x w")], initializers=[external("w", "")]),
        "initializer 'w' has external data without a file name (hint: ",
    ),
    "external data without a file": (
        model_of([node("Add", "x w")], initializers=[external("w", "weights.bin")]),
        "'w' has external data, but the model has no folder (hint: import the model by its path)",
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictory_model(case: str) -> None:
    model, expected = CONTRADICTIONS[case]
    assert expected in refusal(model, ModelError)


def failing(node: Node) -> None:
    """An importer with a mistake."""
    raise KeyError(node.kind)


def find_failing(*_: object) -> Callable[[Node], None]:
    """An importer with a mistake for every operator."""
    return failing


FLAG = numpy_helper.from_array(np.array(True), "flag")
ROUNDS = numpy_helper.from_array(np.array(3), "rounds")
OUTER = helper.make_graph([node("Relu", "x", "z")], "branch", [], [value("z")])
BODY = helper.make_graph(
    [node("Add", "x t", "u"), node("Identity", "c", "d")],
    "body",
    [value("i", TensorProto.INT64, ()), value("c", TensorProto.BOOL, ()), value("t")],
    [value("d", TensorProto.BOOL, ()), value("u")],
)
LARGE = numpy_helper.from_array(np.zeros((200, 200), np.float32))

VALID: dict[str, onnx.ModelProto] = {
    "attributes": model_of([node("Softmax", axis=0)]),
    "branches with names from outside": model_of(
        [node("If", "flag", then_branch=OUTER, else_branch=OUTER)], initializers=[FLAG]
    ),
    "loop with names from outside": model_of([node("Loop", "rounds flag x", body=BODY)], initializers=[FLAG, ROUNDS]),
    "domain by its name": model_of([helper.make_node("Relu", ["x"], ["y"], domain="ai.onnx")]),
    "large constant": model_of([node("Constant", "", value=LARGE)]),
}


@pytest.mark.parametrize("case", VALID)
def test_valid_node_is_not_blamed_for_a_mistake_of_its_importer(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_graph, "find_importer", find_failing)
    with pytest.raises(KeyError):
        import_model(VALID[case].SerializeToString())


def test_large_constant_outside_is_not_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    model = VALID["large constant"]
    onnx.save(model, path, save_as_external_data=True, location="w.bin", convert_attribute=True)
    monkeypatch.setattr(onnx_graph, "find_importer", find_failing)
    with pytest.raises(KeyError):
        import_model(path)


BRANCH = helper.make_graph([node("Relu", "x", "z")], "branch", [], [onnx.ValueInfoProto(name="z")])
SEQUENCE = helper.make_tensor_sequence_value_info("x", FLOATS, None)
OPTIONAL = helper.make_value_info("x", helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOATS, [2])))

UNSUPPORTED: dict[str, tuple[onnx.ModelProto, str]] = {
    "future opset": (model_of([RELU], opset=999), "opset 999 is newer than"),
    "future IR version": (model_of([RELU], ir_version=9999), "IR version 9999 is newer than"),
    "sequence": (model_of([RELU], [SEQUENCE]), "input 'x' is not a tensor: sequence"),
    "optional": (model_of([RELU], [OPTIONAL]), "input 'x' is not a tensor: optional"),
    "operand that is a sequence": (
        model_of([node("SequenceConstruct", "x", "s"), node("Relu", "s", name="act")]),
        "node 'act': Relu: operand 0 is a sequence",
    ),
    "no type": (model_of([RELU], [onnx.ValueInfoProto(name="x")]), "input 'x' has no type"),
    "strings": (
        model_of([RELU], [value("x", TensorProto.STRING)]),
        "node 'act': Relu: operand 0 is of strings",
    ),
    "complex numbers": (
        model_of([RELU], [value("x", TensorProto.COMPLEX64)]),
        "input 'x' has the element type complex64, which is not supported",
    ),
    "initializer of complex numbers": (
        model_of(
            [node("Cast", "w", to=FLOATS)],
            initializers=[helper.make_tensor("w", TensorProto.COMPLEX64, [1], [1.0])],
        ),
        "initializer 'w' has the element type complex64, which is not supported",
    ),
    "cast to float6": (
        model_of([node("Cast", name="to", to=TensorProto.FLOAT6E2M3)]),
        "node 'to': the result of Cast has the element type float6e2m3, which is not supported",
    ),
    "cast to what does not exist": (
        model_of([node("Cast", name="to", to=999)]),
        "node 'to': the result of Cast has the element type number 999, which is not supported",
    ),
    "input without end": (
        model_of([RELU], [value("x", shape=(2**40, 2**40))]),
        "a value of shape (1099511627776, 1099511627776) is too large (hint: check the sizes of inputs",
    ),
    "numbers without end": (
        model_of(
            [node("Range", "a n b", name="count")],
            initializers=[numpy_helper.from_array(np.array(n), name) for n, name in ((0, "a"), (2**50, "n"), (1, "b"))],
        ),
        "node 'count': a value of shape (1125899906842624,) is too large (hint: check the sizes",
    ),
    "value without end": (
        model_of([node("Tile", "x n", name="tile")], initializers=[numpy_helper.from_array(np.array([2**45]), "n")]),
        "node 'tile': a value of shape (70368744177664,) is too large (hint: check the sizes",
    ),
    "unbound dimension": (
        model_of([RELU], [value("x", shape=("N", 3))]),
        "1 dimension has no size: 'N' of input 'x' (hint: bind it, for example N=1)",
    ),
    "several unbound dimensions": (
        model_of([RELU], [value("x", shape=("N", None))]),
        "2 dimensions have no size: 'N' of input 'x', 'x.1' of input 'x' (hint: bind it, for example N=1)",
    ),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_unsupported_model(case: str) -> None:
    model, expected = UNSUPPORTED[case]
    assert expected in refusal(model, UnsupportedError)


def test_all_unsupported_nodes_are_reported_at_once() -> None:
    nodes = [
        helper.make_node("RegionPool", ["x"], ["a"], "regions", domain="com.example"),
        helper.make_node("FusedThing", ["x"], ["b"], "fused", domain="com.example"),
        node("Relu", "b", "c", "unreached"),
        node("Reshape", "x s", "d", "free"),
        node("Add", "a c", "e"),
        node("Add", "d e", "y"),
    ]
    line = refusal(model_of(nodes, [value("x"), value("s", TensorProto.INT64, (1,))]), UnsupportedError)
    for expected in (
        "3 operators are not supported by the importer",
        "com.example.RegionPool ('regions')",
        "com.example.FusedThing ('fused')",
        "the shape of Reshape depends on an input of the model ('free')",
    ):
        assert expected in line
    assert "unreached" not in line


def test_unsupported_nodes_behind_unsupported_ones_are_reported_with_them() -> None:
    nodes = [
        helper.make_node("FusedThing", ["x"], ["a"], "first", domain="com.example"),
        node("Relu", "a", "b", "known"),
        helper.make_node("OtherThing", ["b"], ["y"], "second", domain="com.example"),
    ]
    line = refusal(model_of(nodes, [value("x")]), UnsupportedError)
    assert "2 operators are not supported by the importer" in line
    assert "com.example.FusedThing ('first'), com.example.OtherThing ('second')" in line
    assert "known" not in line


def test_body_of_a_standard_function_is_reported_as_its_caller() -> None:
    inputs = [value("x", shape=(1, 2, 3)), value("s", TensorProto.INT64, (4,))]
    model = model_of([node("AffineGrid", "x s", name="grid")], inputs, opset=20)
    line = refusal(model, UnsupportedError)
    assert line.startswith("node 'grid': ")
    assert "depends on an input of the model" in line


# Files


def test_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "absent.onnx"
    assert refusal(path, ModelError).startswith(f"{path}: cannot be read: No such file or directory (hint: ")


@pytest.mark.parametrize("size", [1, 10, -1, -20])
def test_truncated_file_is_named(tmp_path: Path, size: int) -> None:
    path = tmp_path / "cut.onnx"
    data = model_of([RELU], initializers=[weight("w", *range(100))]).SerializeToString()
    path.write_bytes(data[:size])
    assert refusal(path, ModelError).startswith(f"{path}: is not an ONNX model")


def test_empty_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cut.onnx"
    path.touch()
    assert refusal(path, ModelError) == f"{path}: is empty (hint: check that the download is complete)"


@pytest.mark.parametrize(("data", "fault"), [(b"", "is empty"), (b"abc", "is not an ONNX model")])
def test_bytes_of_something_else_are_told_as_a_model(data: bytes, fault: str) -> None:
    assert refusal(data, ModelError).startswith(f"the model {fault}")


def test_node_without_an_operator_is_refused() -> None:
    model = model_of([node("Relu", name="act")])
    model.graph.node[0].op_type = ""
    assert refusal(model, ModelError).startswith("node 'act': the node has no operator type")


@pytest.mark.parametrize("place", [-1, 16])
@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_places_outside_of_an_unpooled_image_fail(backend: str, place: int) -> None:
    shape = (1, 1, 2, 2)
    operands = [value("x", shape=shape), value("places", TensorProto.INT64, shape)]
    model = model_of([node("MaxUnpool", "x places", kernel_shape=[2, 2], strides=[2, 2])], operands)
    session = InferenceSession(model, backend=backend, cache=False)
    inputs = {"x": np.ones(shape, np.float32), "places": np.array([2, 5, place, 0]).reshape(shape)}
    with pytest.raises(ExecutionError, match="out of range"):
        session.run(None, inputs)


def test_file_of_something_else_is_named(tmp_path: Path) -> None:
    path = tmp_path / "picture.onnx"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    assert refusal(path, ModelError).startswith(f"{path}: is not an ONNX model")


DAMAGED = model_of(
    [
        node("Conv", "x w", "a", "conv", pads=[1, 1]),
        node("Slice", "a s e", "b", "slice"),
        node("Softmax", "b", "y", "softmax", axis=1),
    ],
    [value("x", shape=(1, 2, 4))],
    initializers=[
        numpy_helper.from_array(np.ones((3, 2, 3), np.float32), "w"),
        numpy_helper.from_array(np.array([0, 1]), "s"),
        numpy_helper.from_array(np.array([1, -1]), "e"),
    ],
).SerializeToString()


@pytest.mark.filterwarnings("ignore::glow_mlir.errors.GlowWarning")
@settings(max_examples=examples(300))
@given(place=st.integers(0, len(DAMAGED) - 1), byte=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_byte_never_gives_a_traceback(place: int, byte: int, cut: bool) -> None:
    data = DAMAGED[:place] + bytes([byte]) + (b"" if cut else DAMAGED[place + 1 :])
    try:
        import_model(data)
    except GlowError as error:
        message(error)


def test_name_that_is_no_text_is_refused() -> None:
    line = refusal(DAMAGED.replace(b"softmax", b"soft\xff\xffx"), ModelError)
    assert line.startswith("a name of node b'soft\\xff\\xffx' is not text (hint: the model is damaged")


def test_name_in_a_function_that_is_no_text_is_refused() -> None:
    function = helper.make_function("local", "Cut", ["a"], ["b"], [node("Relu", "a", "b", "inner")], [])
    data = model_of([RELU], functions=[function]).SerializeToString()
    assert refusal(data.replace(b"inner", b"inn\xff\xff"), ModelError).startswith("a name of node b'inn\\xff\\xff'")


def test_errors_inside_a_file_name_file_and_node(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model_of([node("Add", "x w", name="sum")]), path)
    assert refusal(path, ModelError).startswith(f"{path}: node 'sum': operand 'w'")


def saved(tmp_path: Path, location: str) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "model.onnx"
    model = model_of([node("Add", "x w")], [value("x", shape=(4,))], initializers=[external("w", location)])
    path.write_bytes(model.SerializeToString())
    return path


def test_external_data_is_read(tmp_path: Path) -> None:
    path = saved(tmp_path, "weights.bin")
    numbers = np.arange(4, dtype=np.float32)
    (path.parent / "weights.bin").write_bytes(numbers.tobytes())
    np.testing.assert_array_equal(run_function(import_model(path), {"x": numbers})["y"], 2 * numbers)


def test_missing_external_data_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path, "weights.bin")
    line = refusal(path, ModelError)
    assert line.startswith(f"{path}: initializer 'w' cannot be read: ")
    assert "weights.bin" in line


@pytest.mark.parametrize("absolute", [False, True])
def test_external_data_outside_the_folder_is_refused(tmp_path: Path, absolute: bool) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(16))
    path = saved(tmp_path, str(secret) if absolute else "../secret.bin")
    assert "initializer 'w' cannot be read: " in refusal(path, ModelError)


def test_external_data_behind_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(16))
    path = saved(tmp_path, "weights.bin")
    (path.parent / "weights.bin").symlink_to(secret)
    assert "initializer 'w' cannot be read: " in refusal(path, ModelError)


# Dimensions


def test_free_dimensions_are_bound_by_name_or_by_input_and_axis() -> None:
    model = model_of([RELU], [value("x", shape=("N", None, 3))])
    x = np.ones((2, 5, 3), np.float32)
    assert run_function(import_model(model, {"N": 2, "x.1": 5}), {"x": x})["y"].shape == (2, 5, 3)


def test_binding_of_no_dimension_is_a_mistake() -> None:
    model = model_of([RELU], [value("x", shape=("N",))])
    expected = "the model has no free dimension 'M' (hint: free dimensions: 'N')"
    assert refusal(model, OptionError, dimensions={"N": 1, "M": 2}) == expected
    for size in (-2, 1.5, True, None):
        reason = f"dimension 'N' cannot be {size!r} long (hint: a number, or two: (least, most))"
        assert refusal(model, OptionError, dimensions={"N": size}) == reason
    hint = "a number, two, (least, most), or an expression of other dimensions: 'past + 1'"
    assert refusal(model, OptionError, dimensions={"N": "1"}) == f"dimension 'N' cannot be '1' long (hint: {hint})"


def test_sizes_may_be_numbers_of_numpy() -> None:
    model = model_of([RELU], [value("x", shape=("N",))])
    size: Any = np.int64(3)
    assert run_function(import_model(model, {"N": size}), {"x": np.ones(3, np.float32)})["y"].shape == (3,)


# What is unusual, but right


def run(model: onnx.ModelProto, **inputs: np.ndarray) -> list[np.ndarray]:
    module = import_model(model)
    module.verify()
    results = run_function(module, inputs)
    return [results[name] for name in find_function(module).binding_names if name in results]


X = np.array([1, -2], np.float32)


def test_long_chains_are_imported_and_folded() -> None:
    length = 3000
    nodes = [node("Neg", f"x{i}", f"x{i + 1}") for i in range(length)]
    nodes += [node("Shape", f"x{length}", "s"), node("Add", "s zero", "s0")]
    nodes += [node("Add", f"s{i} zero", f"s{i + 1}") for i in range(length)]
    nodes += [node("Reshape", f"x{length} s{length}", "y")]
    zero = numpy_helper.from_array(np.zeros(1, np.int64), "zero")
    module = import_model(model_of(nodes, [value("x0")], initializers=[zero]))
    assert len(list(find_function(module).block.ops)) > 2 * length


def test_output_may_be_an_input_or_an_initializer() -> None:
    model = model_of([RELU], outputs=["x", "y", "w"], initializers=[weight("w", 3, 4)])
    results = run(model, x=X)
    np.testing.assert_array_equal(results[0], X)
    np.testing.assert_array_equal(results[1], np.maximum(X, 0))
    np.testing.assert_array_equal(results[2], [3, 4])


def test_outputs_keep_their_names() -> None:
    nodes = [node("Constant", "", name, value_floats=[0.5] * size) for name, size in (("y", 1), ("z", 2))]
    model = model_of(nodes, [], ["y", "z"])
    assert list(run_function(import_model(model), {})) == ["y", "z"]


def test_initializer_that_is_listed_as_input_is_a_constant() -> None:
    model = model_of([node("Add", "x w")], [value("x"), value("w")], initializers=[weight("w", 1, 2)])
    np.testing.assert_array_equal(run(model, x=X)[0], X + np.array([1, 2]))


def test_optional_outputs_may_be_nameless_or_unused() -> None:
    image = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    for outputs in (["y", ""], ["y", "unused"]):
        pool = helper.make_node("MaxPool", ["x"], outputs, kernel_shape=[2])
        np.testing.assert_array_equal(run(model_of([pool], [value("x", shape=image.shape)]), x=image)[0], [[[1, 2, 3]]])


def test_domain_of_onnx_has_two_names() -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"], domain="ai.onnx")])
    model.opset_import[0].domain = "ai.onnx"
    np.testing.assert_array_equal(run(model, x=X)[0], np.maximum(X, 0))
    assert model.graph.node[0].domain == "ai.onnx"


def test_functions_of_the_model_are_inlined() -> None:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    body = [node("Relu", "a", "b"), node("Neg", "b", "c")]
    function = helper.make_function("local", "NegRelu", ["a"], ["c"], body, opsets[:1])
    model = model_of([helper.make_node("NegRelu", ["x"], ["y"], domain="local")], functions=[function])
    model.opset_import.append(opsets[1])
    np.testing.assert_array_equal(run(model, x=X)[0], -np.maximum(X, 0))


def test_constant_condition_chooses_a_branch() -> None:
    other = helper.make_graph([node("Neg", "a", "z")], "other", [], [onnx.ValueInfoProto(name="z")])
    for condition, expected in ((True, np.maximum(X, 0)), (False, -np.exp(X))):
        nodes = [node("Exp", "x", "a"), node("If", "c", then_branch=BRANCH, else_branch=other)]
        constant = numpy_helper.from_array(np.array(condition), "c")
        np.testing.assert_allclose(run(model_of(nodes, initializers=[constant]), x=X)[0], expected, rtol=1e-6)


def test_every_op_carries_the_name_of_its_node() -> None:
    size = numpy_helper.from_array(np.array([2, 1, 2, 2]), "s")
    grid = node("AffineGrid", "x s", name="grid")
    module = import_model(model_of([grid], [value("x", shape=(2, 2, 3))], initializers=[size], opset=20))
    names = [getattr(op.location, "desc", StringAttr("")).data for op in find_function(module).block.ops]
    assert set(names) == {"x", "s", "grid", "y"}
