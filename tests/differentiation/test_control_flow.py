"""Gradients of branches and loops."""

from __future__ import annotations

import numpy as np
import pytest
from gradients import Arrays, check_module, differentiated
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

ELEMENTS = {np.dtype(np.float64): "f64", np.dtype(np.bool_): "i1", np.dtype(np.int64): "i64"}


def drawn(*shape: int) -> np.ndarray:
    """Numbers between 0.5 and 1.5."""
    return np.random.default_rng(sum(shape)).uniform(0.5, 1.5, shape)


def type_of(value: np.ndarray) -> str:
    """The type of a tensor, as text."""
    return f"tensor<{''.join(f'{size}x' for size in value.shape)}{ELEMENTS[value.dtype]}>"


def module(body: str, inputs: Arrays, result: str, sources: tuple[str, ...]) -> ModuleOp:
    """A module that computes `%y` of type `result` from inputs, and the gradients of it."""
    types = {name: type_of(value) for name, value in inputs.items()}
    outputs = {"y": result, **{f"d{name}": types[name] for name in sources}}
    lines = [f"glow_high.placeholder @{name} : {kind} {{input}}" for name, kind in types.items()]
    lines += [f"glow_high.placeholder @{name} : {kind} {{output}}" for name, kind in outputs.items()]
    lines.append(f"glow_high.func @main({', '.join(f'@{name}' for name in (*types, *outputs))}) {{")
    lines += [f"%{name} = glow_high.get @{name} : {kind}" for name, kind in types.items()]
    lines.append(body)
    if sources:
        found, listed = (", ".join(f"%{prefix}{name}" for name in sources) for prefix in ("d", ""))
        kinds = ", ".join(types[name] for name in sources)
        lines.append(f"{found} = glow_high.gradient %y, none, {listed} : {kinds}")
    lines += [f"glow_high.save %{name}, @{name}" for name in outputs]
    return parse_module("\n".join([*lines, "}"]), new_context())


def check(body: str, inputs: Arrays, result: str) -> None:
    """Compare the gradients of `%y` by all inputs of floats with central differences."""
    sources = tuple(name for name, value in inputs.items() if value.dtype == np.float64)
    check_module(
        differentiated(module(body, inputs, result, sources)), module(body, inputs, result, ()), inputs, sources
    )


BRANCH = """
%y = glow_high.if %which {
  %0 = glow_high.mul %x, %w : tensor<3xf64>
  %1 = glow_high.exp %0 : tensor<3xf64>
  glow_high.yield %1
} else {
  glow_high.yield %x
} : tensor<3xf64>
"""


@pytest.mark.parametrize("which", [True, False])
def test_branches(which: bool) -> None:
    check(BRANCH, {"x": drawn(3), "w": drawn(3) + 1, "which": np.array(which)}, "tensor<3xf64>")


POWERS = """
%y = glow_high.loop %i = 4 (%a = %x) {
  %0 = glow_high.mul %a, %w : tensor<3xf64>
  %1 = glow_high.sin %0 : tensor<3xf64>
  glow_high.yield %1
} : tensor<3xf64>
"""


def test_carried_values() -> None:
    check(POWERS, {"x": drawn(3), "w": drawn(3) + 1}, "tensor<3xf64>")


def test_number_of_the_trip() -> None:
    body = """
%y = glow_high.loop %i = 3 (%a = %x) {
  %0 = glow_high.cast %i {to = f64} : tensor<f64>
  %1 = glow_high.mul %a, %0 : tensor<3xf64>
  %2 = glow_high.add %1, %x : tensor<3xf64>
  glow_high.yield %2
} : tensor<3xf64>
"""
    check(body, {"x": drawn(3)}, "tensor<3xf64>")


@pytest.mark.parametrize("taken", ["", " reversed"])
@pytest.mark.parametrize("given", ["", " reversed"])
def test_rows(taken: str, given: str) -> None:
    body = f"""
%last, %stack = glow_high.loop %i = 4 (%a = %x) over (%row = %rows{taken}) {{
  %0 = glow_high.mul %a, %row : tensor<3xf64>
  %1 = glow_high.mul %0, %w : tensor<3xf64>
  %2 = glow_high.mul %0, %0 : tensor<3xf64>
  glow_high.yield %1, %2
}} : tensor<3xf64>, tensor<4x3xf64>{given}
%factor = glow_high.mul %stack, %rows : tensor<4x3xf64>
%y = glow_high.add %factor, %last : tensor<4x3xf64>
"""
    check(body, {"x": drawn(3), "w": drawn(3) + 1, "rows": drawn(4, 3)}, "tensor<4x3xf64>")


@pytest.mark.parametrize("limit", [0.1, 3.0, 1e9])
def test_condition(limit: float) -> None:
    body = """
%begun = glow_high.less %zero, %limit : tensor<i1>
%last, %y0 = glow_high.loop %i = 4 while %begun (%a = %x) {
  %0 = glow_high.mul %a, %w : tensor<f64>
  %1 = glow_high.less %0, %limit : tensor<i1>
  %2 = glow_high.log %0 : tensor<f64>
  glow_high.yield %1, %0, %2
} : tensor<f64>, tensor<4xf64>
%y = glow_high.add %y0, %last : tensor<4xf64>
"""
    inputs = {"x": np.array(1.2), "w": np.array(1.5), "limit": np.array(limit), "zero": np.array(0.5)}
    check(body, inputs, "tensor<4xf64>")


def test_branch_in_a_loop_in_a_loop() -> None:
    body = """
%y = glow_high.loop %i = 2 (%a = %x) {
  %inner = glow_high.loop %j = 3 (%b = %a) {
    %small = glow_high.less %b, %w : tensor<i1>
    %next = glow_high.if %small {
      %0 = glow_high.mul %b, %w : tensor<f64>
      glow_high.yield %0
    } else {
      %0 = glow_high.sqrt %b : tensor<f64>
      glow_high.yield %0
    } : tensor<f64>
    glow_high.yield %next
  } : tensor<f64>
  %1 = glow_high.sub %inner, %x : tensor<f64>
  %2 = glow_high.abs %1 : tensor<f64>
  glow_high.yield %2
} : tensor<f64>
"""
    check(body, {"x": np.array(1.1), "w": np.array(1.3)}, "tensor<f64>")


def test_input_that_a_body_reads_itself() -> None:
    body = """
%y = glow_high.loop %i = 2 (%a = %x) {
  %0 = glow_high.get @w : tensor<3xf64>
  %1 = glow_high.mul %a, %0 : tensor<3xf64>
  glow_high.yield %1
} : tensor<3xf64>
"""
    check(body, {"x": drawn(3), "w": drawn(3) + 1}, "tensor<3xf64>")


def test_value_that_is_carried_twice() -> None:
    body = """
%y, %z = glow_high.loop %i = 2 (%a = %x, %b = %x) {
  %0 = glow_high.mul %a, %b : tensor<3xf64>
  glow_high.yield %0, %0
} : tensor<3xf64>, tensor<3xf64>
"""
    check(body, {"x": drawn(3)}, "tensor<3xf64>")


def test_trips_without_limit_have_no_gradient() -> None:
    body = """
%y = glow_high.loop %i = %n (%a = %x) {
  %0 = glow_high.exp %a : tensor<f64>
  glow_high.yield %0
} : tensor<f64>
"""
    inputs = {"x": np.array(0.1), "n": np.array(2)}
    with pytest.raises(UnsupportedError, match="loop has a gradient where its trips are counted"):
        differentiated(module(body, inputs, "tensor<f64>", ("x",)))
