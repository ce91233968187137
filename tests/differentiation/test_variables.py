"""Derivatives by variables are partial: one value may be several of them, or a number that is known."""

from __future__ import annotations

import numpy as np
from gradients import Emit, check_gradients, differentiated, run_machine_code
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from glow_mlir.constants.storage import scalar_attribute
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.gradient import GradientOp, VariablesOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.shapes import tensor
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.interpreter.machine import run_function

X = np.array([1.0, 2.0, -3.0])


def test_partial_derivatives() -> None:
    """Of a·b² where both are x, and of c where that is 3 everywhere."""
    builder = ModuleBuilder()
    (x,) = builder.add_inputs({"x": tensor((3,), f64)}, {}).values()

    def emit(kind: type[HighOp], *operands: SSAValue | list[SSAValue] | None, **properties: object) -> list[SSAValue]:
        op = kind.make(*operands, location=named_location("op"), **properties)  # pyright: ignore[reportArgumentType]
        return list(builder.insert(op).results)

    (three,) = emit(SplatOp, value=scalar_attribute(np.float64(3), f64), shape=(3,))
    a, b, c = emit(VariablesOp, [x, x, three])
    (squares,) = emit(MulOp, b, b)
    (product,) = emit(MulOp, a, squares)
    (target,) = emit(MulOp, product, c)
    for name, value in zip("abc", emit(GradientOp, target, None, [a, b, c]), strict=True):
        builder.add_output(name, value)
    module = differentiated(builder.finish("main"))
    assert not any(isinstance(op, VariablesOp | GradientOp) for op in module.walk())
    for found in (run_function(module, {"x": X}), run_machine_code(module.clone(), {"x": X})):
        np.testing.assert_allclose(found["a"], 3 * X**2)
        np.testing.assert_allclose(found["b"], 6 * X**2)
        np.testing.assert_allclose(found["c"], X**3)


def test_derivatives_of_derivatives() -> None:
    """Of the square of a derivative by a variable, by what that is: (2·x)² has the slope 8·x."""

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        (variable,) = emit.all(VariablesOp, [values["x"]])
        slope = emit(GradientOp, emit(MulOp, variable, variable), None, [variable])
        return emit(MulOp, slope, slope)

    found = check_gradients(graph, {"x": X})
    np.testing.assert_allclose(found["dx"], 8 * X)
