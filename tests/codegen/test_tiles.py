"""Models whose instructions have bodies in tiles: buffers of several results, threads, operands that broadcast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    """Random floats."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def numbers(below: int, *shape: int) -> np.ndarray:
    """Random numbers from 0 on."""
    return RANDOM.integers(0, below, shape)


def model_of(nodes: Sequence[NodeProto], inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> bytes:
    """A model of some nodes."""
    types = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in inputs.items()}
    given = [helper.make_tensor_value_info(name, types[name], array.shape) for name, array in inputs.items()]
    graph = helper.make_graph(list(nodes), "tiles", given, [ValueInfoProto(name=name) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


K = helper.make_node("Constant", [], ["k"], value=helper.make_tensor("k", TensorProto.INT64, [1], [8]))
TOP = helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=1)


def gather(data: str, indices: str, result: str) -> NodeProto:
    """The elements of some columns of each row."""
    return helper.make_node("GatherElements", [data, indices], [result], axis=1)


def add(one: str, other: str, result: str) -> NodeProto:
    """A sum."""
    return helper.make_node("Add", [one, other], [result])


TABLE = floats(256, 64)
MODELS: dict[str, tuple[list[NodeProto], dict[str, np.ndarray], list[str]]] = {
    "a second result beside a source of the epilogue": (
        [K, gather("b", "at", "c"), TOP, add("v", "c", "sum"), gather("t", "i", "taken")],
        {"x": numbers(1000, 256, 64), "b": numbers(9, 256, 16), "at": numbers(16, 256, 8), "t": TABLE},
        ["sum", "taken"],
    ),
    "a stack that reads both results": (
        [K, TOP, helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT), add("v", "f", "sum")],
        {"x": TABLE},
        ["sum"],
    ),
    "a source that is made of the second result": (
        [K, TOP, gather("t", "i", "taken"), add("v", "taken", "sum")],
        {"x": TABLE, "t": floats(256, 64)},
        ["sum", "taken"],
    ),
    "a first operand that broadcasts": (
        [helper.make_node("Tanh", ["x"], ["a"]), helper.make_node("MatMul", ["a", "w"], ["y"])],
        {"x": floats(1, 32, 64), "w": floats(24, 64, 40)},
        ["y"],
    ),
    "a softmax between stacks": (
        [
            helper.make_node("Tanh", ["x"], ["a"]),
            helper.make_node("Softmax", ["a"], ["p"], axis=-1),
            helper.make_node("Mul", ["p", "g"], ["y"]),
        ],
        {"x": floats(12, 100, 96), "g": floats(12, 100, 96)},
        ["y"],
    ),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, threads: int) -> None:
    nodes, inputs, outputs = MODELS[name]
    content = model_of(nodes, inputs, outputs)
    reference: Any = onnxruntime.InferenceSession(content)
    results = InferenceSession(content, cache=False, threads=threads).run(None, inputs)
    for found, wanted in zip(results, reference.run(None, inputs), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


FUSED = {
    "softmax": ([helper.make_node("Softmax", ["x"], ["p"], axis=-1), add("p", "r", "y")], (512, 128)),
    "top_k": ([K, TOP, add("v", "r", "y")], (4096, 256)),
}
"""Operators with a sum behind, and the shape of their input: enough work for several threads."""


@pytest.mark.parametrize("name", FUSED)
def test_what_is_fused_does_not_depend_on_threads(name: str) -> None:
    nodes, shape = FUSED[name]
    residual = (shape[0], 8) if name == "top_k" else shape
    content = model_of(nodes, {"x": floats(*shape), "r": floats(*residual)}, ["y"])
    fused: list[bool] = []
    for threads in (1, 4):
        module = import_model(content)
        Compilation(module, target="avx2", fields={"threads": threads}).run(until="selected")
        found = [op for op in module.walk() if isinstance(op, DerivedInstruction) and op.name == f"glow_low.{name}"]
        fused.append(found[0].epilogue is not None)
    assert fused == [True, True]
