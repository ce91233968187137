"""Networks that onnxruntime has quantized give the codes that it computes, and compute on integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import onnxruntime
import pytest
from execute import compile_module
from models import random_inputs
from quantized_models import NETWORKS, quantized_model
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation

from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import GetOp, SplatOp
from glow_mlir.dialects.glow_low.memory import AllocOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.options.declaration import declared
from glow_mlir.options.policy import Policy

SCHEMES = ("qdq-u8", "qdq-u8-weights", "qoperator", "qoperator-i8")

FLOATS: Mapping[str, set[str]] = {
    "residual": {"dequantize", "add"},
    "mobile": {"dequantize", "add"},
    "joined": {"dequantize"},
    "encoder": {"dequantize", "add", "layer_normalization", "softmax"},
}
"""
Network → the operators of its floats: those that have no other form, and what sums of codes are of the other ones, in
registers.
"""


def compiled(network: str, scheme: str, requantization: str, stage: str = "optimized") -> ModuleOp:
    """A network at a stage of its compilation for this machine."""
    module = import_model(quantized_model(network, scheme))
    pipeline = get_backend("cpu").pipeline().with_options("assign-target", requantization=requantization)
    Compilation(module, pipeline=pipeline).run(until=stage)
    return module


def of_floats(module: ModuleOp) -> set[str]:
    """The names of the operators that compute numbers of f32."""
    found: set[str] = set()
    for op in module.walk():
        if isinstance(op, HighOp) and not isinstance(op, GetOp | SplatOp) and _is_float(op):
            found.add(op.name.removeprefix("glow_high."))
    return found


def _is_float(op: Operation) -> bool:
    return any(element_of(result) == f32 for result in op.results)


def reference(network: str, scheme: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """What onnxruntime computes, each operator as it stands."""
    options = cast(Any, onnxruntime.SessionOptions())
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    text = quantized_model(network, scheme).SerializeToString()
    session = onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
    return np.asarray(cast("list[np.ndarray]", session.run(None, inputs))[0])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("network", NETWORKS)
def test_network_computes_on_codes(network: str, scheme: str) -> None:
    """Most results are the same codes; a tie that goes the other way may change some by a few hundredths."""
    inputs = random_inputs(quantized_model(network, scheme), np.random.default_rng(5))
    module, expected = compiled(network, scheme, "float"), reference(network, scheme, inputs)
    assert of_floats(module) <= FLOATS[network]
    (result,) = run_function(module, inputs).values()
    assert np.std(expected) > 0.01
    assert np.mean(result == expected) > 0.5
    np.testing.assert_allclose(result, expected, atol=0.04 * float(np.abs(expected).max()))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("network", ["residual", "mobile", "joined"])
def test_network_computes_by_integers_alone(network: str, scheme: str) -> None:
    """With integer requantization, only the result is dequantized; codes differ where floats are near a tie."""
    inputs = random_inputs(quantized_model(network, scheme), np.random.default_rng(5))
    module, expected = compiled(network, scheme, "integer"), reference(network, scheme, inputs)
    assert of_floats(module) == {"dequantize"}
    (result,) = run_function(module, inputs).values()
    np.testing.assert_allclose(result, expected, atol=0.04 * float(np.abs(expected).max()))


@pytest.mark.parametrize("scheme", ["qdq-i8", "qoperator"])
@pytest.mark.parametrize("requantization", declared(Policy)["requantization"].words)
@pytest.mark.parametrize("network", NETWORKS)
def test_machine_code_computes_the_same_codes(network: str, requantization: str, scheme: str) -> None:
    """Between the first quantization and the last dequantization, no buffer of a network of images holds floats."""
    inputs = random_inputs(quantized_model(network, scheme), np.random.default_rng(7))
    expected = run_function(compiled(network, scheme, requantization), inputs)
    module = compiled(network, scheme, requantization, "stacked")
    buffers = {element_of(op.results[0]) for op in module.walk() if isinstance(op, AllocOp)}
    assert network == "encoder" or f32 not in buffers
    for name, array in compile_module(module).run(inputs).items():
        np.testing.assert_array_equal(array, expected[name])
