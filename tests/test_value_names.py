"""Values keep readable names through text, whatever they are called in a model."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hostile_names import hostile_name
from hypothesis import example, given
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper
from validation import assert_text_round_trips
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from glow_mlir import InferenceSession
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pipelines import Stage
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import module_text, parse_module
from glow_mlir.ir.value_names import value_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("conv", "conv"),
        ("/layer1/Conv", "layer1_Conv"),
        ("layer1.0.weight", "layer1.0.weight"),
        ("conv_1", "conv"),
        ("a_1_2", "a"),
        ("1", "v1"),
        ("1_2", "v1"),
        ("12.5", "v12.5"),
        ("%1", "v1"),
        (".1", ".1"),
        ("_0", None),
        ("ä", None),
        ("名前", None),
        ("", None),
    ],
)
def test_names_are_readable(text: str, name: str | None) -> None:
    assert value_name(text) == name


@given(text=st.one_of(st.text(), st.text("a_1.$-% ä", max_size=8)))
@example("__1_1")
def test_names_are_taken_and_read_as_they_are(text: str) -> None:
    """xDSL shortens no name, its lexer reads each as one, and none ends like a number that its printer appends."""
    name = value_name(text)
    if name is None:
        return
    assert SSAValue.extract_valid_name(name) == name
    token = MLIRLexer(Input(f"%{name}", "test")).lex()
    assert (token.kind, token.text) == (MLIRTokenKind.PERCENT_IDENT, f"%{name}")
    assert value_name(name) == name


def chain(names: list[str]) -> ModelProto:
    """Negations one after the other; the first name is the input's, the last the output's."""
    nodes = [helper.make_node("Neg", [x], [y], name=y) for x, y in pairwise(names)]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "graph", infos[:1], infos[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def checked(_: Stage, module: ModuleOp, __: float) -> None:
    assert_text_round_trips(module)


@pytest.mark.parametrize("first", range(16))
def test_every_stage_prints_and_parses_values_of_any_name(first: int) -> None:
    module = import_model(chain([hostile_name(number) for number in range(first, first + 40)]))
    assert_text_round_trips(module)
    Compilation(module, disable=("canonicalize",), observers=[checked]).run("allocated")


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
@pytest.mark.parametrize("number", range(16))
def test_sessions_call_inputs_and_outputs_as_the_model_does(number: int, backend: str) -> None:
    names = [hostile_name(number), "between", hostile_name(number + 17)]
    session = InferenceSession(chain(names), backend=backend, cache=False)
    assert [arg.name for arg in (*session.get_inputs(), *session.get_outputs())] == [names[0], names[-1]]
    (result,) = session.run([names[-1]], {names[0]: np.array([1, -2], np.float32)})
    np.testing.assert_array_equal(result, [1, -2])


TEXT = """
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.placeholder @y : tensor<2xf32> {output}
glow_high.func @main(@x, @y) {
  %_1 = glow_high.get @x : tensor<2xf32>
  %a_1_2 = glow_high.neg %_1 : tensor<2xf32>
  %a = glow_high.neg %a_1_2 : tensor<2xf32>
  %a_5 = glow_high.neg %a : tensor<2xf32>
  glow_high.save %a_5, @y
}
"""


def test_text_with_numbered_names_prints_and_parses() -> None:
    """xDSL alone would print two values as `%a_1`, and refuse to clone `%_1`."""
    module = parse_module(TEXT, new_context())
    assert_text_round_trips(module.clone())
    assert "%a_2 = glow_high.neg %a_1" in module_text(module)
    assert "%0 = glow_high.get" in module_text(module)
