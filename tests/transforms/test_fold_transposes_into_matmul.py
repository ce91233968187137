"""Folding transposes into matrix products preserves their meaning, and machine code reads what it leaves."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from execute import assert_same, compile_module, sample
from validation import validate
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.constants.weights import add_weights
from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

SIZES = (2, 3, 4, 5)


def product(
    permutation: tuple[int, ...], flagged: bool, element: str = "f32"
) -> tuple[ModuleOp, dict[str, np.ndarray]]:
    """A product whose right operand is a transpose, with a bias; and its inputs."""
    shape = [SIZES[axis] for axis in permutation]
    depth, columns = reversed(shape[-2:]) if flagged else shape[-2:]
    left, result = (*shape[:-2], 7, depth), (*shape[:-2], 7, columns)
    flag = " {transpose_right = true}" if flagged else ""

    def type_of(sizes: tuple[int, ...] | list[int]) -> str:
        return f"tensor<{'x'.join(map(str, sizes))}x{element}>"

    text = f"""
    glow_high.placeholder @a : {type_of(left)} {{input}}
    glow_high.placeholder @x : {type_of(SIZES)} {{input}}
    glow_high.placeholder @b : {type_of([columns])} {{input}}
    glow_high.placeholder @y : {type_of(result)} {{output}}
    glow_high.func @main(@a, @x, @b, @y) {{
      %a = glow_high.get @a : {type_of(left)}
      %x = glow_high.get @x : {type_of(SIZES)}
      %b = glow_high.get @b : {type_of([columns])}
      %1 = glow_high.transpose %x {{permutation = {list(permutation)}}} : {type_of(shape)}
      %2 = glow_high.matmul %a, %1, %b{flag} : {type_of(result)}
      glow_high.save %2, @y
    }}"""
    dtype = {"f32": "f4", "i32": "i4"}[element]
    inputs = {"a": sample(left, dtype), "x": sample(SIZES, dtype, 1), "b": sample((columns,), dtype, 2)}
    return parse_module(text, new_context()), inputs


@pytest.mark.parametrize("element", ["f32", "i32"])
@pytest.mark.parametrize("flagged", [False, True])
@pytest.mark.parametrize("permutation", [*permutations(range(4))])
def test_meaning_is_preserved(permutation: tuple[int, ...], flagged: bool, element: str) -> None:
    module, inputs = product(permutation, flagged, element)
    validate(module, "fold-transposes-into-matmul", inputs, rtol=1e-6, atol=1e-6)
    kept = [tuple(op.permutation.iter_values()) for op in module.walk() if isinstance(op, TransposeOp)]
    exchanged = (*permutation[:2], permutation[3], permutation[2])
    if element == "f32" and permutation[2] == 3:
        assert kept == ([] if exchanged == (0, 1, 2, 3) else [exchanged])
    else:
        assert kept == [permutation]


@pytest.mark.parametrize("permutation", [(0, 1, 3, 2), (0, 2, 3, 1)])
def test_machine_code(permutation: tuple[int, ...]) -> None:
    module, inputs = product(permutation, False)
    expected = run_function(module.clone(), inputs)
    assert_same(expected, compile_module(module).run(inputs))


@pytest.mark.parametrize("flagged", [False, True])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("permutation", [*permutations(range(4))])
def test_flattening(permutation: tuple[int, ...], rows: int, flagged: bool) -> None:
    """The weights behind a flattened transpose are permuted, where the transpose does not move the rows."""
    sizes = (rows, *SIZES[1:])
    shape = [sizes[axis] for axis in permutation]
    depth = 60
    weights = (7, depth) if flagged else (depth, 7)
    text = f"""
    glow_high.placeholder @x : tensor<{"x".join(map(str, sizes))}xf32> {{input}}
    glow_high.placeholder @y : tensor<{rows}x7xf32> {{output}}
    glow_high.func @main(@x, @y) {{
      %x = glow_high.get @x : tensor<{"x".join(map(str, sizes))}xf32>
      %w = glow_high.get @w : tensor<{weights[0]}x{weights[1]}xf32>
      %1 = glow_high.transpose %x {{permutation = {list(permutation)}}} : tensor<{"x".join(map(str, shape))}xf32>
      %2 = glow_high.reshape %1 {{shape = [{rows}, {depth}]}} : tensor<{rows}x{depth}xf32>
      %3 = glow_high.matmul %2, %w {{transpose_right = {str(flagged).lower()}}} : tensor<{rows}x7xf32>
      glow_high.save %3, @y
    }}"""
    digest = add_weights(sample(weights, "f4", 1))
    constant = f'glow_high.constant @w : tensor<{weights[0]}x{weights[1]}xf32> {{weights = "{digest}"}}'
    module = parse_module(constant + text, new_context())
    validate(module, "fold-transposes-into-matmul", {"x": sample(sizes, "f4")}, rtol=1e-5, atol=1e-5)
    kept = [op for op in module.walk() if isinstance(op, TransposeOp)]
    assert bool(kept) == (rows > 1 and permutation[0] != 0)
