"""
No integer operand leads out of its arrays: each counts as an address, in every operator and kernel, as an input of the
call and as a constant. `make fuzz` runs all changes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from breadth import examples
from extreme_numbers import cases, changes
from mutant_programs import all_texts
from xdsl.dialects.builtin import ModuleOp, f32, i8, i16, i32, i64

from glow_mlir import InferenceSession
from glow_mlir.dialects.element_types import ui8, ui16
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.dialect import operators
from glow_mlir.dialects.operand_types import TensorConstraint
from glow_mlir.errors import ExecutionError, ModelError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

FUZZ = Path(__file__).parent / "fuzz.py"
COUNT = examples(160)

TREES = """
glow_high.placeholder @x : tensor<4x2xf32> {{input}}
{nodes}
glow_high.constant @leaves : tensor<2x1xf32> {{value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>}}
glow_high.placeholder @y : tensor<4x1xf32> {{output}}
glow_high.func @main({arguments}) {{
  %x = glow_high.get @x : tensor<4x2xf32>
  %nodes = glow_high.get @nodes : tensor<1x4xi32>
  %root = glow_high.splat {{value = 0 : i32}} : tensor<1xi32>
  %leaves = glow_high.get @leaves : tensor<2x1xf32>
  %y = glow_high.tree_ensemble %x, %nodes, none, %root, %leaves {{size = 1}} : tensor<4x1xf32>
  glow_high.save %y, @y
}}
"""
WRONG = ([0, -1001, -1, 0], [0, 10**8, -1, 0], [10**8, -1, -2, 0], [-1, -1, -2, 0], [0, 0, -1, 0], [0, -3, -1, 0])


def module_of(arguments: str, nodes: str) -> ModuleOp:
    """A module with one tree, whose nodes are those of a constant or an input."""
    return parse_module(TREES.format(nodes=nodes, arguments=arguments), new_context())


def test_numbers_lead_nowhere_else() -> None:
    """In child processes: a stray access is a signal."""
    command = [sys.executable, str(FUZZ), "numbers", "--count", str(COUNT), "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{COUNT} seeds, 0 failed" in done.stdout


def test_each_integer_operand_of_each_operator_is_changed() -> None:
    changed = {(cases()[change.name].operator, change.operand) for change in changes()}
    missing = [
        f"{operator.name} {name}"
        for operator in (kind for kind in operators() if issubclass(kind, HighOp))
        for place, (name, operand) in enumerate(operator.get_irdl_definition().operands)
        if _takes_integers_alone(operand.constr) and (operator, place) not in changed
    ]
    assert not missing


def _takes_integers_alone(constraint: object) -> bool:
    """Whether an operand takes no floats."""
    inner = getattr(getattr(constraint, "constraint", constraint), "constr", None)
    assert isinstance(inner, TensorConstraint)
    return not inner.accepts(f32) and any(map(inner.accepts, (i8, i16, i32, i64, ui8, ui16)))


@pytest.mark.parametrize("nodes", WRONG)
def test_nodes_of_a_call_are_looked_at(nodes: list[int]) -> None:
    given = "glow_high.placeholder @nodes : tensor<1x4xi32> {input}"
    session = InferenceSession(module_of("@x, @nodes, @y", given))
    x = np.zeros((4, 2), np.float32)
    with pytest.raises(ExecutionError, match="a number of a node, a test or a target is out of range"):
        session.run(None, {"x": x, "nodes": np.array([nodes], np.int32)})
    (found,) = session.run(None, {"x": x, "nodes": np.array([[1, -2, -1, 0]], np.int32)})
    assert found.ravel().tolist() == [2.0] * 4


@pytest.mark.parametrize("nodes", WRONG)
def test_nodes_of_a_module_are_looked_at(nodes: list[int]) -> None:
    constant = f"glow_high.constant @nodes : tensor<1x4xi32> {{value = dense<[{nodes}]> : tensor<1x4xi32>}}"
    with pytest.raises(ModelError, match=r"tree_ensemble: a number of a node, a test or a target is out of range"):
        InferenceSession(module_of("@x, @y", constant))


def test_trees_are_among_the_programs_of_mutants() -> None:
    assert any("tree_ensemble" in texts["imported"] for texts in all_texts())


def test_features_that_some_sizes_have_are_looked_at_in_calls() -> None:
    constant = "glow_high.constant @nodes : tensor<1x4xi32> {value = dense<[[3, -1, -2, 0]]> : tensor<1x4xi32>}"
    text = TREES.format(nodes=constant, arguments="@x, @y")
    text = text.replace("tensor<4x2xf32>", "tensor<4x?xf32, #glow.sizes<[c], c = 2 to 9>>")
    session = InferenceSession(parse_module(text, new_context()))
    with pytest.raises(ExecutionError, match="out of range"):
        session.run(None, {"x": np.zeros((4, 3), np.float32)})
    assert session.run(None, {"x": np.zeros((4, 4), np.float32)})[0].ravel().tolist() == [1.0] * 4
