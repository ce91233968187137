"""Models that people use, in the forms that exporters write: machine code, the interpreter and export agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from signal_models import SIGNALS
from text_models import TEXTS
from vision_models import VISION
from vision_transformers import TRANSFORMERS
from written_models import Case
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession
from glow_mlir.backends.interpreter.executable import InterpretedModule
from glow_mlir.driver.pipelines import Stage
from glow_mlir.frontends.onnx.export.exporter import exported_model

MODELS = VISION | TRANSFORMERS | TEXTS | SIGNALS
Arrays = Mapping[str, np.ndarray]


def by_onnxruntime(model: onnx.ModelProto, inputs: Arrays) -> list[np.ndarray]:
    """What onnxruntime computes by the operators as they are."""
    options = cast(Any, onnxruntime).SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(array) for array in cast("list[Any]", session.run(None, dict(inputs)))]


def assert_agrees(found: list[np.ndarray], case: Case, expected: list[np.ndarray]) -> None:
    """Within 1e-3 relative; in models of codes, a sum that is rounded otherwise may be the next code."""
    step = 0.02 if any(node.op_type == "QuantizeLinear" for node in case.model.graph.node) else 1e-4
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        scale = float(np.abs(theirs).max())
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=step * scale)


@pytest.mark.parametrize("name", MODELS)
def test_model(name: str) -> None:
    """In machine code, in the interpreter as imported, and as an optimized ONNX model in onnxruntime."""
    case = MODELS[name]()
    stages: dict[str, ModuleOp] = {}

    def keep(stage: Stage, module: ModuleOp, seconds: float) -> None:
        if stage.name in ("imported", "optimized"):
            stages[stage.name] = module.clone()

    session = InferenceSession(case.model, cache=False, observers=[keep])
    expected = by_onnxruntime(case.reference or case.model, case.inputs)
    assert all(np.std(array) > 1e-3 for array in expected if array.dtype.kind == "f")
    assert_agrees(session.run(None, case.inputs), case, expected)
    interpreted = InterpretedModule(stages["imported"]).entry().run(case.inputs)
    assert_agrees([interpreted[arg.name] for arg in session.get_outputs()], case, expected)
    exported = exported_model(stages["optimized"])
    onnx.checker.check_model(exported, full_check=True)
    assert_agrees(by_onnxruntime(exported, case.inputs), case, expected)
