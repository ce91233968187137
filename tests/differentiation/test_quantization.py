"""Gradients of quantization go straight through: 1 where the code is in range, 0 elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from gradients import differentiated, gradient_module
from xdsl.dialects.builtin import IntegerType, Signedness, f32, i8
from xdsl.ir import Attribute, SSAValue

from glow_mlir.api.model_session import ModelSession
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp, StorageCastOp
from glow_mlir.dialects.quant import UniformQuantizedType
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.emitter import Emitter

ui8 = IntegerType(8, Signedness.UNSIGNED)
X = np.linspace(-3, 3, 121, dtype=np.float32)
FACTOR = np.linspace(1, 2, 121, dtype=np.float32)


def gradients(graph: Callable[[Emitter, dict[str, SSAValue]], SSAValue], **inputs: np.ndarray) -> dict[str, np.ndarray]:
    """The result and the gradient by each input, of the interpreter, with which machine code is compared."""
    module = differentiated(gradient_module(graph, inputs, list(inputs)))
    session = ModelSession.of(module.clone(), backend="cpu", cache=False)
    found = run_function(module, inputs)
    for name, value in session.run(inputs).items():
        np.testing.assert_allclose(value, found[name], rtol=1e-6, atol=1e-6)
    return found


def rounded(emit: Emitter, value: SSAValue, *parameters: SSAValue, to: Attribute) -> SSAValue:
    """The numbers that the codes of numbers stand for."""
    return emit(DequantizeOp, emit(QuantizeOp, value, *parameters, to=to), *parameters)


@pytest.mark.parametrize(("least", "most", "zero_point"), [(0, 255, 120), (-127, 127, 0), (-7, 7, 0)])
def test_codes_of_one_scale(least: int, most: int, zero_point: int) -> None:
    scale, storage = 1.5 / (most - zero_point), i8 if least < 0 else ui8
    kind = UniformQuantizedType.of(storage, f32, [(scale, zero_point)], bounds=(least, most))
    found = gradients(lambda emit, v: emit(MulOp, rounded(emit, v["x"], to=kind), v["w"]), x=X, w=FACTOR)
    codes = np.rint(X / np.float32(scale)) + zero_point
    inside = (codes >= least) & (codes <= most)
    assert 0 < inside.sum() < X.size
    np.testing.assert_array_equal(found["dx"], np.where(inside, FACTOR, 0))
    np.testing.assert_allclose(found["dw"], (np.clip(codes, least, most) - zero_point) * scale, rtol=1e-6)


def test_scale_of_the_graph_has_no_part() -> None:
    """Where the scale follows from the operand, its gradient is that of the numbers alone."""
    x, scale = X.reshape(11, 11), np.linspace(0.01, 0.03, 11, dtype=np.float32)
    found = gradients(lambda emit, v: rounded(emit, v["x"], v["s"], to=i8), x=x, s=scale)
    codes = np.rint(x / scale)
    np.testing.assert_array_equal(found["dx"], (codes >= -128) & (codes <= 127))
    assert not found["ds"].any()


def test_zero_points_of_the_graph_move_the_range() -> None:
    scale, zero_point = np.array(0.01, np.float32), np.array(250, np.uint8)

    def graph(emit: Emitter, v: dict[str, SSAValue]) -> SSAValue:
        return rounded(emit, v["x"], emit.constant(scale, "s"), emit.constant(zero_point, "z"), to=ui8)

    codes = np.rint(X / scale) + 250
    np.testing.assert_array_equal(gradients(graph, x=X)["dx"], (codes >= 0) & (codes <= 255))


def test_codes_under_another_type_stay_codes_of_numbers() -> None:
    kind = UniformQuantizedType.of(i8, f32, [(0.02, 3)], bounds=(-128, 127))

    def graph(emit: Emitter, v: dict[str, SSAValue]) -> SSAValue:
        stored = emit(StorageCastOp, emit(QuantizeOp, v["x"], to=kind), to=i8)
        return emit(DequantizeOp, emit(StorageCastOp, stored, to=kind))

    codes = np.rint(X / np.float32(0.02)) + 3
    np.testing.assert_array_equal(gradients(graph, x=X)["dx"], (codes >= -128) & (codes <= 127))


def test_scale_of_given_codes_has_a_gradient() -> None:
    codes = np.arange(-60, 61, dtype=np.int8)
    found = gradients(
        lambda emit, v: emit(DequantizeOp, emit.constant(codes, "q"), v["s"]), s=np.float32(0.5).reshape(1)
    )
    np.testing.assert_array_equal(found["ds"], [codes.astype(np.float32).sum()])
