"""Values as Python has them become what the model declares, as in onnxruntime, or are refused in one line."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from python_value_cases import ML, assert_same, by_onnxruntime, node_model, words

from glow_mlir import InferenceSession
from glow_mlir.errors import InputError, ModelError

FLOAT, DOUBLE, INT, TEXT = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING

VOCABULARY: dict[int, dict[str, Any]] = {
    INT: {"int64_vocabulary": [0, 1]},
    TEXT: {"string_vocabulary": ["0", "1"]},
}


class Number:
    def __float__(self) -> float:
        return 2.5


def map_model(key: int, element: int, kind: str = "DictVectorizer", **attributes: Any) -> onnx.ModelProto:
    """A map through a node to tensor 'y'."""
    type_ = helper.make_map_type_proto(key, helper.make_tensor_type_proto(element, []))
    node = helper.make_node(kind, ["x"], ["y"], domain=ML, **(attributes or VOCABULARY[key]))
    graph = helper.make_graph([node], "g", [helper.make_value_info("x", type_)], [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run(model: onnx.ModelProto, value: Any) -> Any:
    return InferenceSession(model, cache=False).run(None, {"x": value})[0]


FLOATS = [5, 5.13, np.float32(5.13), np.float64(5.13), np.int32(5), True, np.array(5.13), 1e300, np.nan, Number()]


@pytest.mark.parametrize("key", [INT, TEXT], ids=["int64", "string"])
def test_values_of_a_map_get_the_declared_type(key: int) -> None:
    model = map_model(key, FLOAT)
    session = InferenceSession(model, cache=False)
    for value in FLOATS:
        given = {"x": {0 if key == INT else "0": value}}
        assert_same(session.run(None, given)[0], by_onnxruntime(model, given)[0], 0)


def test_keys_of_a_map_may_be_of_numpy() -> None:
    for key, name in ((INT, np.int32(0)), (INT, np.int64(0)), (INT, False), (TEXT, np.str_("0"))):
        np.testing.assert_array_equal(run(map_model(key, FLOAT), {name: 3}), np.array([[3, 0]], np.float32))


@pytest.mark.parametrize(("key", "element"), [(INT, DOUBLE), (TEXT, DOUBLE), (TEXT, INT), (INT, TEXT)])
def test_maps_of_all_types_give_the_declared_one(key: int, element: int) -> None:
    one, zero = {DOUBLE: (np.float32(0.1), 0.0), INT: (np.int16(7), 0), TEXT: (b"a", "")}[element]
    dtype = {DOUBLE: np.float64, INT: np.int64, TEXT: object}[element]
    expected = words("a", "").reshape(1, 2) if element == TEXT else np.array([[one, zero]], dtype)
    assert_same(run(map_model(key, element), {0 if key == INT else "0": one}), expected, 0)
    assert run(map_model(key, element), {}).dtype == dtype


WRONG_MAPS: dict[str, tuple[int, int, Any, str]] = {
    "a word for a number": (INT, FLOAT, {0: "1"}, "input 'x' is map(int64,tensor(float)), and has 0: '1'"),
    "nothing for a number": (INT, FLOAT, {0: None}, "and has 0: None"),
    "several numbers": (INT, FLOAT, {0: np.array([1.0, 2.0])}, "and has 0: array([1., 2.])"),
    "a fraction for a whole number": (TEXT, INT, {"0": 1.5}, "and has '0': 1.5"),
    "a number beyond int64": (TEXT, INT, {"0": 2**63}, "and has '0': 9223372036854775808"),
    "a number for a word": (INT, TEXT, {0: 7}, "and has 0: 7"),
    "a word as key": (INT, FLOAT, {0: 1.0, "1": 2.0}, "and has '1': 2.0"),
    "a fraction as key": (INT, FLOAT, {1.0: 2.0}, "and has 1.0: 2.0"),
    "a number as key": (TEXT, FLOAT, {1: 2.0}, "and has 1: 2.0"),
    "no dictionary": (INT, FLOAT, [(0, 1.0)], "input 'x' has to be a dict, not a 'list'"),
}


@pytest.mark.parametrize("case", WRONG_MAPS)
def test_what_a_map_cannot_have_is_refused(case: str) -> None:
    key, element, value, expected = WRONG_MAPS[case]
    with pytest.raises(InputError, match=re.escape(expected)):
        run(map_model(key, element), value)


def test_map_that_is_an_output_as_well_is_converted() -> None:
    model = map_model(INT, FLOAT)
    model.graph.output.append(model.graph.input[0])
    given = {0: np.float64(5.13)}
    _, same = InferenceSession(model, cache=False).run(None, {"x": given})
    assert (type(same), same) == (dict, {0: float(np.float32(5.13))})


@pytest.mark.parametrize(
    ("cast_to", "element", "value"), [("TO_FLOAT", FLOAT, 5.13), ("TO_INT64", FLOAT, -5.9), ("TO_STRING", FLOAT, 5.13)]
)
def test_cast_map_takes_the_declared_type(cast_to: str, element: int, value: float) -> None:
    model = map_model(INT, element, "CastMap", cast_to=cast_to, map_form="SPARSE", max_map=3)
    given = {"x": {np.int64(1): np.float64(value)}}
    assert_same(InferenceSession(model, cache=False).run(None, given)[0], by_onnxruntime(model, given)[0], 0)


def test_vocabulary_and_keys_are_of_one_type() -> None:
    with pytest.raises(ModelError, match="the map has int64 keys, but the operator has string_vocabulary"):
        run(map_model(INT, FLOAT, string_vocabulary=["0"]), {0: 1.0})
    with pytest.raises(ModelError, match="CastMap: keys of the map are strings"):
        run(map_model(TEXT, FLOAT, "CastMap", cast_to="TO_FLOAT"), {"0": 1.0})


def sequence_model(element: int, optional: bool = False) -> onnx.ModelProto:
    """An input 'x' that is an output as well: a sequence of tensors, or an optional one."""
    item = helper.make_tensor_type_proto(element, None)
    value = helper.make_value_info(
        "x", helper.make_optional_type_proto(item) if optional else helper.make_sequence_type_proto(item)
    )
    node = helper.make_node("OptionalHasElement" if optional else "SequenceLength", ["x"], ["n"])
    graph = helper.make_graph([node], "g", [value], [value, onnx.ValueInfoProto(name="n")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_numbers_in_sequences_and_optionals_get_the_declared_type() -> None:
    for found in (run(sequence_model(FLOAT), [[1, 2.5], 3]), [run(sequence_model(FLOAT, optional=True), [1, 2.5])]):
        assert_same(found[0], np.array([1, 2.5], np.float32), 0)
    assert run(sequence_model(FLOAT, optional=True), None) is None
    assert_same(run(sequence_model(TEXT), [np.array([b"a"]), "b"]), [words("a"), np.array("b", object)])


@pytest.mark.parametrize("optional", [False, True])
def test_arrays_in_sequences_and_optionals_have_the_declared_type(optional: bool) -> None:
    for value in (np.ones(2), np.array(["a"])):
        with pytest.raises(InputError, match="input 'x' consists of float, not of"):
            run(sequence_model(FLOAT, optional), value if optional else [value])
    with pytest.raises(InputError, match="has 7, which is not a string"):
        run(sequence_model(TEXT, optional), np.array([7], object) if optional else [np.array([7], object)])
    with pytest.raises(InputError, match="input 'x' has no value"):
        run(sequence_model(FLOAT), [None])


def test_strings_of_any_form_are_text() -> None:
    model = node_model("Identity", [words("a", "b")])
    session = InferenceSession(model, cache=False)
    coded = ["é\0".encode(), b"b\0\0"]
    for given in (["é\0", "b\0\0"], words("é\0", "b\0\0"), coded, np.array(coded, object), np.array(coded, np.void)):
        np.testing.assert_array_equal(session.run(None, {"x0": given})[0], words("é\0", "b\0\0"))
    np.testing.assert_array_equal(session.run(None, {"x0": np.array(["é", "b"])})[0], words("é", "b"))
    np.testing.assert_array_equal(session.run(None, {"x0": np.array([b"a", b"b"])})[0], words("a", "b"))
    with pytest.raises(InputError, match="input 'x0' must be string"):
        session.run(None, {"x0": np.zeros(2, [("a", np.int32)])})
