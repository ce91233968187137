"""onnxruntime's operators on codes give the codes, and the numbers, that onnxruntime computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from glow_mlir import InferenceSession
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function

RANDOM = np.random.default_rng(3)
IMAGE = RANDOM.integers(0, 256, (1, 4, 6, 6)).astype(np.uint8)
SIGNED = RANDOM.integers(-128, 128, (1, 4, 6, 6)).astype(np.int8)
ROWS = RANDOM.integers(0, 256, (5, 8)).astype(np.uint8)
WEIGHTS = RANDOM.integers(-64, 64, (8, 3)).astype(np.int8)
"""Of 7 bits: onnxruntime's sums of two products of u8 and i8 end at 16 bits on processors without VNNI."""

NUMBERS = RANDOM.standard_normal((5, 8)).astype(np.float32)
BIAS = RANDOM.integers(-900, 900, 3).astype(np.int32)


def f(*values: float) -> np.ndarray:
    """Numbers: one as a scalar."""
    return np.asarray(values, np.float32).squeeze()


def u(*values: int) -> np.ndarray:
    """Codes without a sign: one as a scalar."""
    return np.asarray(values, np.uint8).squeeze()


def i(*values: int) -> np.ndarray:
    """Codes with a sign: one as a scalar."""
    return np.asarray(values, np.int8).squeeze()


Case = tuple[str, list[np.ndarray | None], Mapping[str, Any]]

SUM = [IMAGE, f(0.02), u(120), IMAGE[:, :, ::-1].copy(), f(0.03), u(7), f(0.04), u(100)]
SCALES, COLUMNS = f(0.01, 0.02, 0.015), f(0.1, 0.3, 0.2)
WINDOW = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}

CASES: Mapping[str, Case] = {
    "sum": ("QLinearAdd", [*SUM], {}),
    "sum-signed": ("QLinearAdd", [SIGNED, f(0.02), i(-9), SIGNED, f(0.03), i(0), f(0.05), i(3)], {}),
    "sum-broadcast": ("QLinearAdd", [*SUM[:3], IMAGE[:, :, :1, :1].copy(), *SUM[4:]], {}),
    "product": ("QLinearMul", [*SUM], {}),
    "join": (
        "QLinearConcat",
        [f(0.04), u(100), IMAGE, f(0.02), u(120), IMAGE, f(0.04), u(100), IMAGE, f(0.03), u(7)],
        {"axis": 1},
    ),
    "mean": ("QLinearAveragePool", [IMAGE, f(0.02), u(120), f(0.015), u(100)], WINDOW),
    "mean-padded": (
        "QLinearAveragePool",
        [IMAGE, f(0.02), u(120), f(0.015), u(100)],
        {**WINDOW, "count_include_pad": 1, "strides": [2, 2]},
    ),
    "mean-of-all": ("QLinearGlobalAveragePool", [IMAGE, f(0.02), u(120), f(0.005), u(100)], {}),
    "mean-of-last": ("QLinearGlobalAveragePool", [IMAGE, f(0.02), u(120), f(0.005), u(100)], {"channels_last": 1}),
    "sigmoid": ("QLinearSigmoid", [SIGNED, f(0.05), i(3), f(1 / 256), i(-128)], {}),
    "leaky": ("QLinearLeakyRelu", [SIGNED, f(0.05), i(3), f(0.03), i(-20)], {"alpha": 0.2}),
    "softmax": ("QLinearSoftmax", [ROWS, f(0.05), u(3), f(1 / 256), u(0)], {"axis": 1, "opset": 13}),
    "softmax-of-all": ("QLinearSoftmax", [IMAGE, f(0.05), u(3), f(1 / 256), u(0)], {"axis": 1, "opset": 11}),
    "choice": (
        "QLinearWhere",
        [RANDOM.integers(0, 2, ROWS.shape).astype(bool), ROWS, f(0.02), u(9), ROWS, f(0.03), u(1), f(0.04), u(5)],
        {},
    ),
    "gemm": ("QGemm", [ROWS, f(0.02), u(9), WEIGHTS, f(0.01), i(0), BIAS, f(0.2), u(100)], {}),
    "gemm-columns": (
        "QGemm",
        [ROWS, f(0.02), u(9), WEIGHTS.T.copy(), SCALES, i(0, 0, 0), BIAS, f(0.2), u(100)],
        {"transB": 1},
    ),
    "gemm-numbers": ("QGemm", [ROWS, f(0.02), u(9), WEIGHTS, f(0.01), i(0), BIAS], {"alpha": 0.5}),
    "integers": ("MatMulIntegerToFloat", [ROWS, WEIGHTS, f(0.02), SCALES, u(9), i(1, 2, 3), COLUMNS], {}),
    "integers-alone": ("MatMulIntegerToFloat", [ROWS, WEIGHTS, f(0.02), f(0.01)], {}),
    "dynamic": ("DynamicQuantizeMatMul", [NUMBERS, WEIGHTS, f(0.01), i(3), COLUMNS], {}),
    "dynamic-columns": ("DynamicQuantizeMatMul", [NUMBERS, WEIGHTS, SCALES], {}),
}
"""Name → operator, operands of which the first is the input of the model, and attributes."""


@pytest.mark.parametrize("name", CASES)
def test_operator_agrees_with_onnxruntime(name: str) -> None:
    """Codes to the last but at ties, numbers to rounding."""
    kind, operands, attributes = CASES[name]
    given = [(f"x{place}" if array is not None else "", array) for place, array in enumerate(operands)]
    arrays = {operand: array for operand, array in given if array is not None}
    first = next(iter(operand for operand, array in arrays.items() if array.size > 1))
    node = helper.make_node(kind, [operand for operand, _ in given], ["y"], kind, domain="com.microsoft", **attributes)
    data = arrays.pop(first)
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info(first, helper.np_dtype_to_tensor_dtype(data.dtype), data.shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(array, operand) for operand, array in arrays.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = np.asarray(cast("list[np.ndarray]", session.run(None, {first: data}))[0])
    (result,) = run_function(import_model(model), {first: data}).values()
    assert result.dtype == expected.dtype
    if expected.dtype == np.float32:
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
        return
    difference = result.astype(int) - expected.astype(int)
    assert np.abs(difference).max() <= 1
    assert np.mean(difference == 0) > 0.9


QUANTIZED = np.random.default_rng(20).integers(0, 256, (2, 1000)).astype(np.uint8)

HALVES: Mapping[str, tuple[str, list[np.ndarray], Mapping[str, Any]]] = {
    "sum": ("QLinearAdd", [QUANTIZED[0], f(0.5), u(11), QUANTIZED[1], f(0.25), u(7), f(1.0)], {}),
    "product": ("QLinearMul", [QUANTIZED[0], f(0.5), u(11), QUANTIZED[1], f(0.25), u(7), f(16.0)], {}),
    "mean": ("QLinearAveragePool", [QUANTIZED.reshape(1, 2, 25, 40), f(0.5), u(11), f(1.0)], {"kernel_shape": [2, 2]}),
    "itself": (
        "QLinearAveragePool",
        [QUANTIZED.reshape(1, 2, 25, 40), f(0.5), u(11), f(1.0)],
        {"kernel_shape": [1, 1]},
    ),
    "mean-of-all": ("QLinearGlobalAveragePool", [QUANTIZED.reshape(5, 100, 2, 2), f(0.5), u(11), f(1.0)], {}),
    "leaky": ("QLinearLeakyRelu", [QUANTIZED[0], f(0.5), u(99), f(1.0)], {"alpha": 0.5}),
}
"""Operators whose results lie in the middle between two codes: operands before the zero point of the result."""


@pytest.mark.parametrize("zero_point", [20, 21, 255])
@pytest.mark.parametrize("given", ["codes", "scale", "zero point", "both"])
@pytest.mark.parametrize("name", HALVES)
def test_halves_are_rounded_as_onnxruntime_does(name: str, given: str, zero_point: int) -> None:
    """
    To an even code or to an even distance from the zero point, as the operator does.

    This is so whether the parameters of the result are known, or `given` by the call, as codes are.
    """
    kind, known, attributes = HALVES[name]
    operands = [*known, u(zero_point)]
    names = [f"x{place}" for place in range(len(operands))]
    arrays = dict(zip(names, operands, strict=True))
    by_call = {name for name, array in arrays.items() if array.size > 1}
    by_call |= {"codes": set(), "scale": {names[-2]}, "zero point": {names[-1]}, "both": {*names[-2:]}}[given]
    inputs = {name: array for name, array in arrays.items() if name in by_call}
    graph = helper.make_graph(
        [helper.make_node(kind, names, ["y"], domain="com.microsoft", **attributes)],
        "graph",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in inputs.items()
        ],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(array, name) for name, array in arrays.items() if name not in by_call],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = cast("list[np.ndarray]", session.run(None, inputs))
    for backend in ("cpu", "interpreter"):
        (found,) = InferenceSession(model, cache=False, backend=backend).run(None, inputs)
        np.testing.assert_array_equal(found, wanted)
