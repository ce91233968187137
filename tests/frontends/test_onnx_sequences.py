"""Sequences, optionals and strings at inputs, inside and at outputs; host operators before, behind and between."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from python_value_cases import assert_node, assert_same, by_onnxruntime, node_model, words

from glow_mlir import InferenceSession
from glow_mlir.api.bundles import bundle_of
from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.errors import ExecutionError, InputError, ModelError, UnsupportedError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.context import new_context
from glow_mlir.ir.python_values import python_values_of
from glow_mlir.ir.text import module_text, parse_module

FLOAT, INT, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
node = helper.make_node
tensor = helper.make_tensor_value_info
sequence = helper.make_tensor_sequence_value_info


def optional(name: str, kind: int, shape: list[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_value_info(name, helper.make_optional_type_proto(helper.make_tensor_type_proto(kind, shape)))


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    initializers: list[onnx.TensorProto] | None = None,
) -> onnx.ModelProto:
    opsets = [
        helper.make_opsetid("", 21),
        helper.make_opsetid("ai.onnx.ml", 3),
        helper.make_opsetid("com.microsoft", 1),
    ]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers or [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def assert_model(model: onnx.ModelProto, given: dict[str, Any]) -> list[Any]:
    """Fail where a backend gives other values than onnxruntime; these."""
    expected = by_onnxruntime(model, given)
    for backend in ("interpreter", "cpu"):
        session = InferenceSession(model, backend=backend, cache=False)
        found = session.run(None, given)
        for ours, theirs in zip(found, expected, strict=True):
            assert_same(ours, theirs)
        assert [output.name for output in session.get_outputs()] == [output.name for output in model.graph.output]
    return expected


X = np.arange(6, dtype=np.float32).reshape(3, 2)


# ---- Sequences


def test_parts_of_a_tensor_as_a_sequence() -> None:
    nodes = [
        node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0),
        node("SequenceAt", ["s", "last"], ["y"]),
        node("SequenceLength", ["s"], ["n"]),
        node("ConcatFromSequence", ["s"], ["c"], axis=1, new_axis=1),
    ]
    outputs = [sequence("s", FLOAT, None), tensor("y", FLOAT, [2]), tensor("n", INT, []), tensor("c", FLOAT, [2, 3])]
    last = helper.make_tensor("last", INT, [], [-1])
    assert_model(model_of(nodes, [tensor("x", FLOAT, [3, 2])], outputs, [last]), {"x": X})


def test_inserted_and_erased() -> None:
    nodes = [
        node("SequenceEmpty", [], ["e"]),
        node("SequenceInsert", ["e", "x"], ["a"]),
        node("SequenceInsert", ["a", "z", "first"], ["b"]),
        node("SequenceErase", ["b"], ["c"]),
    ]
    inputs = [tensor("x", FLOAT, [3, 2]), tensor("z", FLOAT, [1])]
    outputs = [sequence("b", FLOAT, None), sequence("c", FLOAT, None), sequence("e", FLOAT, None)]
    first = helper.make_tensor("first", INT, [], [0])
    assert_model(model_of(nodes, inputs, outputs, [first]), {"x": X, "z": np.ones(1, np.float32)})


@pytest.mark.parametrize("position", [0, 1, 2, -1])
def test_element_at_a_computed_position(position: int) -> None:
    nodes = [
        node("SplitToSequence", ["x"], ["s"], axis=0),
        node("ReduceMax", ["p"], ["q"], keepdims=0),
        node("SequenceAt", ["s", "q"], ["y"]),
    ]
    model = model_of(nodes, [tensor("x", FLOAT, [3, 2]), tensor("p", INT, [2])], [tensor("y", FLOAT, [1, 2])])
    assert_model(model, {"x": X, "p": np.array([position, position])})


def test_sequences_that_are_given() -> None:
    nodes = [node("SequenceInsert", ["s", "x"], ["t"]), node("SequenceLength", ["t"], ["n"])]
    inputs = [sequence("s", FLOAT, None), tensor("x", FLOAT, ["N"])]
    model = model_of(nodes, inputs, [sequence("t", FLOAT, None), tensor("n", INT, [])])
    session = InferenceSession(model, cache=False)
    assert [argument.type for argument in session.get_inputs()] == ["seq(tensor(float))", "tensor(float)"]
    for lengths in ([], [2], [2, 3], [4, 1]):
        given = {"s": [np.full(n, n, np.float32) for n in lengths], "x": np.ones(len(lengths), np.float32)}
        for ours, theirs in zip(session.run(None, given), by_onnxruntime(model, given), strict=True):
            assert_same(ours, theirs)


def test_loop_that_grows_a_sequence() -> None:
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["go_on"]),
            node("Cast", ["i"], ["i_float"], to=FLOAT),
            node("Add", ["x", "i_float"], ["row"]),
            node("SequenceInsert", ["s", "row"], ["t"]),
        ],
        "body",
        [tensor("i", INT, []), tensor("go", TensorProto.BOOL, []), sequence("s", FLOAT, None)],
        [tensor("go_on", TensorProto.BOOL, []), sequence("t", FLOAT, None)],
    )
    nodes = [
        node("SequenceEmpty", [], ["empty"]),
        node("Loop", ["count", "", "empty"], ["s"], body=body),
        node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1),
    ]
    model = model_of(nodes, [tensor("x", FLOAT, [3, 2]), tensor("count", INT, [])], [tensor("y", FLOAT, None)])
    assert_model(model, {"x": X, "count": np.array(4)})


def test_branches_that_give_sequences() -> None:
    branches: dict[str, Any] = {
        name: helper.make_graph(
            [node(kind, ["x"], ["a"]), node("SequenceConstruct", ["a", "x"], ["s"])],
            name,
            [],
            [sequence("s", FLOAT, None)],
        )
        for name, kind in (("then_branch", "Neg"), ("else_branch", "Exp"))
    }
    nodes = [
        node("ReduceMax", ["x"], ["most"], keepdims=0),
        node("Greater", ["most", "limit"], ["is_large"]),
        node("If", ["is_large"], ["s"], **branches),
    ]
    limit = helper.make_tensor("limit", FLOAT, [], [3.0])
    model = model_of(nodes, [tensor("x", FLOAT, [3, 2])], [sequence("s", FLOAT, None)], [limit])
    assert_model(model, {"x": X})
    assert_model(model, {"x": X / 2})


# ---- Optionals


@pytest.mark.parametrize("given", [None, X])
def test_optional_inputs(given: np.ndarray | None) -> None:
    get = helper.make_graph([node("OptionalGetElement", ["o"], ["v"])], "then", [], [tensor("v", FLOAT, [3, 2])])
    use = helper.make_graph([node("Neg", ["x"], ["w"])], "else", [], [tensor("w", FLOAT, [3, 2])])
    nodes = [node("OptionalHasElement", ["o"], ["h"]), node("If", ["h"], ["y"], then_branch=get, else_branch=use)]
    inputs = [optional("o", FLOAT, [3, 2]), tensor("x", FLOAT, [3, 2])]
    model = model_of(nodes, inputs, [tensor("y", FLOAT, [3, 2]), tensor("h", TensorProto.BOOL, [])])
    for backend in ("interpreter", "cpu"):
        session = InferenceSession(model, backend=backend, cache=False)
        assert session.get_inputs()[0].type == "optional(tensor(float))"
        y, has = session.run(None, {"o": given, "x": X})
        np.testing.assert_array_equal(y, -X if given is None else given)
        assert has == (given is not None)


def test_what_is_no_sequence_is_refused() -> None:
    model = model_of([node("SequenceLength", ["s"], ["n"])], [sequence("s", FLOAT, None)], [tensor("n", INT, [])])
    session = InferenceSession(model, cache=False)
    with pytest.raises(InputError, match="input 's' has to be a list, not a 'ndarray'"):
        session.run(None, {"s": X})
    with pytest.raises(InputError, match=r"input 's' consists of float, not of int64"):
        session.run(None, {"s": [np.array([1])]})


# ---- Strings


STRINGS: dict[str, tuple[str, list[np.ndarray], dict[str, Any]]] = {
    "equal": ("Equal", [words("a", "b"), words("a", "c")], {}),
    "broadcast": ("Equal", [words("a", "b").reshape(2, 1), words("b", "a")], {}),
    "picked": ("Gather", [words("a", "b", "a"), np.array([2, 1])], {}),
    "side by side": ("Concat", [words("a", "b"), words("é", "")], {"axis": 0}),
    "chosen": ("Where", [np.array([True, False]), words("a", "b"), words("x", "y")], {}),
    "turned": ("Transpose", [words("a", "b", "c", "d").reshape(2, 2)], {}),
    "tiled": ("Tile", [words("a", "b"), np.array([2])], {}),
    "split": ("Split", [words("a", "b", "c", "d")], {"num_outputs": 2}),
    "joined": ("StringConcat", [words("a", "b").reshape(2, 1), words("x", "é")], {}),
    "parted": ("StringSplit", [words("a b  c", "", "d")], {}),
    "parted by commas": ("StringSplit", [words("a,b,,c", "", "d")], {"delimiter": ",", "maxsplit": 2}),
    "matched": ("RegexFullMatch", [words("www.a.com", "b")], {"pattern": r"www\.[\w]+\.com"}),
    "normalized": (
        "StringNormalizer",
        [words("Mon", "tue", "mon")],
        {"case_change_action": "UPPER", "is_case_sensitive": 0, "stopwords": ["TUE"], "locale": "C"},
    ),
    "all normalized away": ("StringNormalizer", [words("Mon")], {"stopwords": ["mon"], "locale": "C"}),
    "distinct": ("Unique", [words("b", "a", "b", "é")], {}),
    "distinct as they come": ("Unique", [words("b", "a", "b")], {"sorted": 0}),
    "numbers": ("Cast", [np.array([1.5, 0.1, 1e10, 1e-7, np.nan, np.inf, -np.inf], np.float32)], {"to": STRING}),
    "integers": ("Cast", [np.array([1, -5])], {"to": STRING}),
    "truth": ("Cast", [np.array([True, False])], {"to": STRING}),
    "read": ("Cast", [words("1.5", "NaN", "INF", "-INF", "1e3", " 7")], {"to": FLOAT}),
    "read integers": ("Cast", [words("15", "-3", "1.5")], {"to": INT}),
}
RESULTS = {"parted": 2, "parted by commas": 2, "split": 2, "distinct": 4, "distinct as they come": 4}


@pytest.mark.parametrize("case", STRINGS)
def test_strings(case: str) -> None:
    kind, arrays, attributes = STRINGS[case]
    assert_node(kind, arrays, RESULTS.get(case, 1), **attributes)


TOKENIZERS: dict[str, dict[str, Any]] = {
    "words": {"mark": 0, "mincharnum": 1, "tokenexp": "[a-zA-Z0-9_]+"},
    "marked long words": {"mark": 1, "mincharnum": 2, "tokenexp": "[a-zA-Z0-9_]+"},
    "between spaces": {"mark": 0, "mincharnum": 1, "separators": [" "]},
    "between two separators": {"mark": 0, "mincharnum": 2, "separators": [" ", "l+"]},
    "letters": {"mark": 1, "mincharnum": 1, "separators": [""]},
}


@pytest.mark.parametrize("case", TOKENIZERS)
@pytest.mark.parametrize("rows", [1, 2])
def test_tokens(case: str, rows: int) -> None:
    texts = words("Hello wörld, this is", "a", "", " b  c ")
    given = texts.reshape(rows, -1) if rows > 1 else texts
    assert_node("Tokenizer", [given], domain="com.microsoft", version=1, pad_value="#", **TOKENIZERS[case])


def test_host_operators_between_machine_code() -> None:
    nodes = [
        node("Mul", ["x", "two"], ["doubled"]),
        node("Cast", ["doubled"], ["texts"], to=STRING),
        node("StringConcat", ["texts", "suffix"], ["named"]),
        node(
            "LabelEncoder", ["named"], ["code"], domain="ai.onnx.ml", keys_strings=["2!", "4!"], values_int64s=[10, 20]
        ),
        node("Add", ["code", "one"], ["y"]),
    ]
    initializers = [
        helper.make_tensor("two", FLOAT, [], [2.0]),
        numpy_helper.from_array(words("!"), "suffix"),
        helper.make_tensor("one", INT, [], [1]),
    ]
    outputs = [tensor("y", INT, ["N"]), tensor("named", STRING, ["N"])]
    model = model_of(nodes, [tensor("x", FLOAT, ["N"])], outputs, initializers)
    y, named = assert_model(model, {"x": np.array([1, 2, 3], np.float32)})
    assert (y.tolist(), named.tolist()) == ([11, 21, 0], ["2!", "4!", "6!"])


def test_text_goes_through_tokens_and_counts_to_a_class() -> None:
    nodes = [
        node(
            "Tokenizer", ["text"], ["t"], domain="com.microsoft", mark=0, pad_value="#", mincharnum=1, tokenexp="[a-z]+"
        ),
        node(
            "TfIdfVectorizer",
            ["t"],
            ["counts"],
            mode="TF",
            min_gram_length=1,
            max_gram_length=1,
            max_skip_count=0,
            ngram_counts=[0],
            ngram_indexes=[0, 1],
            pool_strings=["cat", "dog"],
        ),
        node("ArgMax", ["counts"], ["index"], axis=1, keepdims=0),
        node("ArrayFeatureExtractor", ["names", "index"], ["label"], domain="ai.onnx.ml"),
    ]
    names = numpy_helper.from_array(words("cats", "dogs"), "names")
    model = model_of(nodes, [tensor("text", STRING, ["N"])], [tensor("label", STRING, [1, "N"])], [names])
    assert_model(model, {"text": words("a cat and a cat", "dog", "dog dog cat")})


def test_strings_that_calls_bring_are_forgotten_with_them() -> None:
    model = node_model("Identity", [words("a")], free=True)
    session = InferenceSession(model, cache=False)
    for number in range(3):
        given = words(*(f"{number}-{n}" for n in range(100)))
        np.testing.assert_array_equal(session.run(None, {"x0": given})[0], given)
    np.testing.assert_array_equal(session.run(None, {"x0": ["as", "a", "list"]})[0], words("as", "a", "list"))
    with pytest.raises(InputError, match="input 'x0' has 7, which is not a string"):
        session.run(None, {"x0": np.array(["a", 7], object)})


def test_strings_come_from_the_cache_as_well(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_MLIR_CACHE", str(tmp_path))
    model = node_model(
        "LabelEncoder", [np.array([0])], domain="ai.onnx.ml", keys_int64s=[0, 1], values_strings=["no", "yes"]
    )
    for _ in range(2):
        assert InferenceSession(model).run(None, {"x0": np.array([1])})[0].tolist() == ["yes"]


WRONG: dict[str, tuple[onnx.ModelProto, type[Exception], str]] = {
    "sum of strings": (
        node_model("Add", [words("a"), words("b")], free=False),
        UnsupportedError,
        "node 'node': Add: operand 0 is of strings",
    ),
    "what RE2 has not": (
        node_model("RegexFullMatch", [words("a")], pattern=r"(a)\1"),
        ModelError,
        r"'(a)\1' is not a regular expression of RE2: invalid escape sequence: \1",
    ),
    "what is no number": (node_model("Cast", [words("a")], to=FLOAT), ExecutionError, "'a' is not a number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_strings_cannot_do(case: str) -> None:
    model, error, expected = WRONG[case]
    given = {value.name: words("a") for value in model.graph.input}
    with pytest.raises(error) as caught:
        InferenceSession(model, cache=False).run(None, given)
    assert expected in str(caught.value)


def test_expressions_take_linear_time() -> None:
    """What goes back and forth needs 2^40 steps for this string, in which nothing else of the process runs."""
    model = node_model("RegexFullMatch", [words("a")], pattern=r"(\w+\s?)+@example")
    assert not InferenceSession(model).run(None, {"x0": words("a" * 40 + "!")})[0][0]


def test_bundles_have_numbers_alone() -> None:
    model = node_model(
        "LabelEncoder", [np.array([0])], domain="ai.onnx.ml", keys_int64s=[0, 1], values_strings=["no", "yes"]
    )
    expected = r"a bundle has tensors of numbers only, and output 'y0' is tensor\(string\)"
    with pytest.raises(UnsupportedError, match=expected):
        bundle_of({"": model}, "labels", CompileOptions("cpu"))
    with pytest.raises(UnsupportedError, match="StringConcat runs in Python"):
        bundle_of({"": node_model("StringConcat", [words("a"), words("b")])}, "words", CompileOptions("cpu"))


def test_module_says_what_is_for_python_and_round_trips() -> None:
    model = node_model(
        "LabelEncoder", [np.array([0, 1])], domain="ai.onnx.ml", keys_int64s=[0, 1], values_strings=["no", "yes"]
    )
    module = import_model(model)
    again = parse_module(module_text(module), new_context())
    assert python_values_of(again) == python_values_of(module) is not None
    for backend in ("interpreter", "cpu"):
        session = InferenceSession(again, backend=backend, cache=False)
        assert session.run(None, {"x0": np.array([1, 5])})[0].tolist() == ["yes", "_Unused"]


def test_elements_are_called_as_nothing_else_in_the_model() -> None:
    constant = node("Constant", [], ["s.0"], value=helper.make_tensor("", FLOAT, [1], [100.0]))
    nodes = [constant, node("ConcatFromSequence", ["s"], ["c"], axis=0), node("Add", ["c", "s.0"], ["y"])]
    model = model_of(nodes, [sequence("s", FLOAT, None)], [tensor("y", FLOAT, None)])
    given = {"s": [np.ones(2, np.float32), np.ones(1, ">f4")]}
    assert InferenceSession(model, cache=False).run(None, given)[0].tolist() == [101, 101, 101]


def test_outputs_are_nobody_elses() -> None:
    nodes = [node("StringConcat", ["x", "k"], ["y"]), node("Identity", ["x"], ["unused"])]
    outputs = [tensor("y", STRING, ["N"]), tensor("k", STRING, [1]), tensor("x", STRING, ["N"])]
    model = model_of(nodes, [tensor("x", STRING, ["N"])], outputs, [numpy_helper.from_array(words("!"), "k")])
    session, x = InferenceSession(model, cache=False), words("a", "b")
    _, constant, same = session.run(None, {"x": x})
    constant[0] = same[0] = "changed"
    assert (x.tolist(), session.run(None, {"x": x})[0].tolist()) == (["a", "b"], ["a!", "b!"])


def test_what_callers_give_wrongly_is_told_in_one_line() -> None:
    strings = InferenceSession(node_model("Identity", [words("a")]), cache=False)
    with pytest.raises(InputError, match="which is not a string"):
        strings.run(None, {"x0": np.array([{}], object)})
    model = model_of(
        [node("ConcatFromSequence", ["s"], ["y"], axis=0)], [sequence("s", FLOAT, None)], [tensor("y", FLOAT, None)]
    )
    with pytest.raises(InputError, match="element 0 of input 's' is not an array"):
        InferenceSession(model, cache=False).run(None, {"s": [[1, [2]]]})
