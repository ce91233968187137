"""Gradients of single operators: what their squares, or the derivatives of these, have for derivatives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gradients import Arrays, Emit, check_gradients, differentiated, gradient_module, run_machine_code
from xdsl.ir import SSAValue

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.interpreter.machine import run_function


def numbers(*shape: int, seed: int = 0, least: float = -2, most: float = 2) -> np.ndarray:
    """Numbers in f64, all of them different."""
    return np.random.default_rng(seed).uniform(least, most, shape)


def check_operator(
    kind: type[HighOp],
    inputs: Arrays,
    operands: Sequence[str | Sequence[str] | None] | None = None,
    order: int = 1,
    **properties: AttributeValue,
) -> None:
    """
    Compare the gradients of the squares of a result, or of the gradients of these where `order` is 2, with differences.

    Squares tell one element from another, as sums do not. `operands` are the names of inputs, a list of them for a
    variadic operand, by default all inputs in order.
    """

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        given = [
            None if item is None else values[item] if isinstance(item, str) else [values[name] for name in item]
            for item in operands or tuple(inputs)
        ]
        result = emit(kind, *given, **properties)
        square = emit(MulOp, result, result)
        for _ in range(order - 1):
            first = next(value for name, value in values.items() if inputs[name].dtype == np.float64)
            found = emit(GradientOp, square, None, [first])
            square = emit(MulOp, found, found)
        return square

    check_gradients(graph, inputs)


def gradients_of(kind: type[HighOp], inputs: Arrays, **properties: AttributeValue) -> list[dict[str, np.ndarray]]:
    """The gradients of the sum of a result with regard to floats: those of the interpreter, and of machine code."""
    sources = [name for name, value in inputs.items() if value.dtype.kind == "f"]
    module = differentiated(
        gradient_module(lambda emit, values: emit(kind, *values.values(), **properties), inputs, sources)
    )
    return [run_function(module, inputs), run_machine_code(module.clone(), inputs)]
