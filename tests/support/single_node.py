"""Models of one ONNX node, run by us, by ONNX's reference implementation and by onnxruntime."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from node_cases import outputs_of
from node_cases import with_constants as fixed_model
from onnx import helper
from other_runtimes import by_onnxruntime, by_reference

from glow_mlir import InferenceSession
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function

IR_VERSION = 10
"""Old enough for onnxruntime, new enough for every operator here."""


@dataclass(frozen=True)
class SingleNode:
    """One application of an ONNX operator: operands (`None` where absent), attributes, opset version."""

    kind: str
    operands: Sequence[np.ndarray | None]
    opset: int
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: int = 1
    constant: Collection[int] = ()
    """Positions of operands that are constants of the model."""

    def model(self) -> onnx.ModelProto:
        """The model with all operands as inputs."""
        names = ["" if operand is None else f"x{position}" for position, operand in enumerate(self.operands)]
        outputs = [f"y{position}" for position in range(self.outputs)]
        node = helper.make_node(self.kind, names, outputs, **self.attributes)
        inputs = [
            helper.make_tensor_value_info(f"x{position}", helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for position, array in enumerate(self.operands)
            if array is not None
        ]
        graph = helper.make_graph([node], "single", inputs, [onnx.ValueInfoProto(name=name) for name in outputs])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR_VERSION)

    def feeds(self) -> dict[str, np.ndarray]:
        """The operands by name."""
        return {f"x{position}": array for position, array in enumerate(self.operands) if array is not None}

    def on_cpu(self) -> list[np.ndarray]:
        """What machine code computes."""
        model, feeds = self.with_constants()
        return InferenceSession(model, cache=False).run(None, feeds)

    def by_us(self) -> list[np.ndarray]:
        """What the interpreter computes."""
        model, feeds = self.with_constants()
        module = import_model(model)
        module.verify()
        return outputs_of(module, run_function(module, feeds))

    def with_constants(self) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        """The model with the operands in it that are constants, and the others by name."""
        feeds = self.feeds()
        fixed = {f"x{position}": feeds.pop(f"x{position}") for position in self.constant if f"x{position}" in feeds}
        return fixed_model(self.model(), fixed), feeds

    def by_reference(self) -> list[np.ndarray]:
        """What ONNX's reference implementation computes."""
        return list(by_reference(self.model(), self.feeds()).values())

    def by_onnxruntime(self) -> list[np.ndarray]:
        """What onnxruntime computes, without its optimizations."""
        return list(by_onnxruntime(self.model(), self.feeds()).values())


def assert_equal(
    actual: Sequence[np.ndarray], wanted: Sequence[np.ndarray], rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """Compare types, shapes and values; floats up to rounding, NaN and infinities exactly."""
    assert len(actual) == len(wanted)
    for ours, theirs in zip(actual, wanted, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        if theirs.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(ours, theirs)
