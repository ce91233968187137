"""Long chains of elementwise operators become one loop that reads and writes each element once."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from glow_mlir import InferenceSession
from glow_mlir.analysis.cost import bytes_moved
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import DeallocOp
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model

SIZE = 1 << 24


def chain() -> ModelProto:
    """Ten elementwise operators on 16 million floats, some with a constant."""
    kinds = ["Neg", "Mul", "Add", "Relu", "Sub", "Abs", "Mul", "Add", "Max", "Neg"]
    nodes, value = list[NodeProto](), "x"
    for number, kind in enumerate(kinds):
        operands = [value, "half"] if kind in ("Mul", "Add", "Sub", "Max") else [value]
        nodes.append(helper.make_node(kind, operands, [f"v{number}"], name=f"node{number}"))
        value = f"v{number}"
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [SIZE])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, [SIZE])],
        [helper.make_tensor("half", TensorProto.FLOAT, [], [0.5])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_a_chain_is_one_pass_over_memory() -> None:
    module = Compilation(import_model(chain())).run(until="allocated")
    instructions = [op for op in module.walk() if isinstance(op, Instruction) and not isinstance(op, DeallocOp)]
    assert [op.name for op in instructions] == ["glow_low.stack"]
    assert sum(map(bytes_moved, instructions)) == 2 * 4 * SIZE
    x = np.random.default_rng(0).standard_normal(SIZE, np.float32)
    (result,) = InferenceSession(chain(), cache=False).run(None, {"x": x})
    half = np.float32(0.5)
    expected = np.maximum(np.abs(np.maximum(-x * half + half, 0) - half) * half + half, half)
    np.testing.assert_array_equal(result, -expected)
