"""Functions of StableHLO that call themselves or too many others, and arrays that are too large."""

from __future__ import annotations

import pytest

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.stablehlo import node
from glow_mlir.frontends.stablehlo.files import read_stablehlo
from glow_mlir.frontends.stablehlo.importer import import_stablehlo
from glow_mlir.frontends.stablehlo.operators import control_flow

TYPE = "tensor<f32>"


def twice(name: str, callee: str) -> str:
    """A function that calls another one twice."""
    call = f"func.call @{callee}"
    return f"""func.func @{name}(%0: {TYPE}) -> {TYPE} {{
%1 = {call}(%0) : ({TYPE}) -> {TYPE}
%2 = {call}(%1) : ({TYPE}) -> {TYPE}
func.return %2 : {TYPE}
}}
"""


def imported(text: str) -> None:
    """Import a program."""
    import_stablehlo(read_stablehlo(text.encode()))


def test_a_function_that_calls_itself_is_refused_at_once() -> None:
    with pytest.raises(ModelError, match="the function 'main' calls itself"):
        imported(twice("main", "main"))
    with pytest.raises(ModelError, match="the function 'other' calls itself"):
        imported(twice("main", "other") + twice("other", "third") + twice("third", "other"))


def test_calls_that_multiply_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert control_flow.MAX_INLINED == node.MAX_INLINED
    monkeypatch.setattr(control_flow, "MAX_INLINED", 100)
    leaf = f"func.func @f0(%0: {TYPE}) -> {TYPE} {{ func.return %0 : {TYPE} }}\n"
    chain = leaf + "".join(twice(f"f{number}", f"f{number - 1}") for number in range(1, 12))
    with pytest.raises(ModelError, match="or more than 100, are not supported"):
        imported(chain + twice("main", "f11"))


def test_positions_in_too_large_an_array_are_refused() -> None:
    large = f"tensor<{1 << 60}xi8>"
    with pytest.raises(UnsupportedError, match="iota"):
        imported(f"func.func @main() -> {large} {{ %0 = stablehlo.iota dim = 0 : {large} func.return %0 : {large} }}")
