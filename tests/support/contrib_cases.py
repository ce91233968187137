"""Models of one operator that onnxruntime adds to ONNX's, whose results are compared with its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from node_cases import with_constants
from onnx import helper
from onnx_models import message
from other_runtimes import by_onnxruntime

from glow_mlir import InferenceSession
from glow_mlir.errors import GlowError
from glow_mlir.frontends.onnx.importer import import_model

ONNXRUNTIME = "com.microsoft"
OPSET, IR_VERSION = 21, 10
BACKENDS = ("interpreter", "cpu")


@dataclass(frozen=True)
class Contrib:
    """One application of an operator: operands (`None` where absent), attributes, and which results are asked for."""

    kind: str
    operands: Sequence[np.ndarray | None]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    results: Collection[int] = (0,)
    constant: Collection[int] = ()
    """Positions of operands that are constants of the model."""
    domain: str = ONNXRUNTIME
    tolerance: float = 2e-5
    """How far results may be off, by the largest of theirs."""

    def model(self) -> onnx.ModelProto:
        """The model, with the operands as inputs that are no constants."""
        names = ["" if operand is None else f"x{place}" for place, operand in enumerate(self.operands)]
        while names and not names[-1]:
            names.pop()
        outputs = [f"y{place}" if place in self.results else "" for place in range(max(self.results) + 1)]
        node = helper.make_node(self.kind, names, outputs, self.kind, domain=self.domain, **self.attributes)
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in self._arrays().items()
        ]
        graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs if name])
        versions = {"": OPSET} | ({self.domain: 1} if self.domain else {})
        opsets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        return with_constants(model, {f"x{place}": self._arrays()[f"x{place}"] for place in self.constant})

    def _arrays(self) -> dict[str, np.ndarray]:
        return {f"x{place}": array for place, array in enumerate(self.operands) if array is not None}

    def inputs(self) -> dict[str, np.ndarray]:
        """The operands that are no constants, by name."""
        return {name: array for name, array in self._arrays().items() if int(name[1:]) not in self.constant}

    def by_us(self, backend: str = "cpu") -> list[np.ndarray]:
        """What one of our backends computes."""
        return InferenceSession(self.model(), backend=backend, cache=False).run(None, self.inputs())

    def expected(self) -> list[np.ndarray]:
        """What onnxruntime computes."""
        return list(by_onnxruntime(self.model(), self.inputs()).values())

    def check(self, expected: Sequence[np.ndarray] | None = None) -> None:
        """Fail where a backend gives other results than onnxruntime, or than those expected."""
        wanted = self.expected() if expected is None else expected
        for backend in BACKENDS:
            assert_near(self.by_us(backend), wanted, self.tolerance)

    def refusal(self, kind: type[GlowError]) -> str:
        """What is said where the operator is refused."""
        with pytest.raises(kind) as caught:
            import_model(self.model())
        return message(caught.value)


def assert_near(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], tolerance: float) -> None:
    """Compare types and shapes; floats within a share of the largest, others exactly."""
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if theirs.dtype.kind != "f":
            np.testing.assert_array_equal(ours, theirs)
            continue
        scale = max(1.0, float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0)))
        limit = scale * (max(tolerance, 4e-3) if theirs.dtype == np.float16 else tolerance)
        np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=0, atol=limit)


RANDOM = np.random.default_rng(7)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Random numbers."""
    return RANDOM.standard_normal(shape).astype(dtype)


def below(limit: int, *shape: int, dtype: str = "int64") -> np.ndarray:
    """Random integers from 0 on."""
    return RANDOM.integers(0, limit, shape).astype(dtype)
