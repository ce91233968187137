"""Products of integers: exact, and wrapped in the accumulator, as ONNX MatMulInteger and ConvInteger define them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from execute import Case, check, module_of, runnable_targets
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_high.convolution import ConvOp, ConvTransposeOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.interpreter.machine import run_function

NARROW = ["int8", "uint8"]


def integers(shape: tuple[int, ...], name: str) -> np.ndarray:
    info = np.iinfo(name)
    return np.random.default_rng(sum(shape)).integers(info.min, info.max, shape, name, endpoint=True)


def result(case: Case) -> np.ndarray:
    module, inputs = module_of(case)
    module.verify()
    return run_function(module, inputs)["out0"]


def by_onnx(kind: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    inputs = {"left": left, "right": right}
    types = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    output = helper.make_tensor_value_info("y", TensorProto.INT32, None)
    graph = helper.make_graph([helper.make_node(kind, list(inputs), ["y"])], "product", types, [output])
    (found,) = ReferenceEvaluator(helper.make_model(graph)).run(None, inputs)
    return np.asarray(found)


@pytest.mark.parametrize("left", NARROW)
@pytest.mark.parametrize("right", NARROW)
def test_matmul_is_that_of_matmul_integer(left: str, right: str):
    a, b = integers((5, 37), left), integers((37, 4), right)
    found = result(Case(MatMulOp, a, b))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, by_onnx("MatMulInteger", a, b))


@pytest.mark.parametrize("image", NARROW)
def test_conv_is_that_of_conv_integer(image: str):
    x, w = integers((1, 3, 6, 7), image), integers((4, 3, 3, 3), image)
    found = result(Case(ConvOp, x, w, layout="channels_first"))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, by_onnx("ConvInteger", x, w))


def test_bias_and_padding_are_exact():
    x, w, bias = integers((1, 4, 4, 3), "int8"), integers((5, 3, 3, 3), "int8"), integers((5,), "int32") // 4
    found = result(Case(ConvOp, x, w, bias, pads=(1, 1, 1, 1)))
    exact = result(Case(ConvOp, x.astype("f8"), w.astype("f8"), bias.astype("f8"), pads=(1, 1, 1, 1)))
    np.testing.assert_array_equal(found, exact)
    back = result(Case(ConvTransposeOp, x, integers((3, 2, 2, 6), "int8"), strides=(2, 2)))
    assert back.dtype == np.int32


@given(st.integers(-128, 127), st.integers(-128, 127), st.integers(-(2**31), 2**31 - 1))
def test_sums_wrap_in_the_accumulator(x: int, w: int, start: int):
    bias = np.array([start], np.int32)
    found = result(Case(FullyConnectedOp, np.full((1, 3), x, np.int8), np.full((3, 1), w, np.int8), bias))
    exact = (start + 3 * x * w + 2**31) % 2**32 - 2**31
    assert found.item() == exact


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("kinds", [("int8", "int8"), ("int8", "uint8"), ("uint8", "int8"), ("uint16", "int16")])
def test_machine_code_of_matmul_is_as_exact(kinds: tuple[str, str], target: str):
    a, b = integers((2, 5, 33), kinds[0]), integers((33, 21), kinds[1])
    check(MatMulOp, a, b, target=target)
    check(MatMulOp, a, b, integers((21,), "int32"), target=target)


def test_quantized_elements_are_moved_as_they_are_stored(tmp_path: Path):
    path = tmp_path / "model.mlir"
    path.write_text(MOVED)
    x = integers((4, 2), "int8")
    for backend in ("cpu", "interpreter"):
        (y,) = InferenceSession(path, backend=backend).run(None, {"x": x})
        np.testing.assert_array_equal(y, x.T)


MOVED = """
glow_high.placeholder @x : tensor<4x2x!quant.uniform<i8:f32, 0.02:3>> {input}
glow_high.placeholder @y : tensor<2x4x!quant.uniform<i8:f32, 0.02:3>> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4x2x!quant.uniform<i8:f32, 0.02:3>>
  %0 = glow_high.transpose %x {permutation = [1, 0]} : tensor<2x4x!quant.uniform<i8:f32, 0.02:3>>
  glow_high.save %0, @y
}
"""
