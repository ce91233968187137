"""`glow-run --check` of TensorFlow Lite models: all tensors, with the interpreter and with LiteRT's kernels."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tflite_files import OperatorCase, TensorCase, tflite_model

from glow_mlir.errors import OptionError
from glow_mlir.tools.reports.layer_check import LITERT, Comparison, Tolerance, check_reference


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A sum of quantized values, and its sum with an operand."""
    tensors = [TensorCase((2, 3), "int8", scales=[0.5], zeros=[3]) for _ in range(4)]
    operators = [
        OperatorCase("ADD", numbers, (result,), {0: ("b", 0)}) for numbers, result in (((0, 1), 2), ((2, 0), 3))
    ]
    path = tmp_path / "sum.tflite"
    path.write_bytes(tflite_model(tensors, operators, (0, 1), (3,)))
    return path


def compared(model: Path, reference: str, wrong: int = 0) -> str:
    """The verdict on a model whose output is by `wrong` too large."""
    rng = np.random.default_rng(0)
    inputs = {name: rng.integers(-128, 128, (2, 3), np.int8) for name in ("t0", "t1")}
    left, right = (array.astype(int) - 3 for array in inputs.values())
    found = ((left + right).clip(-131, 124) + left).clip(-131, 124 - wrong) + 3 + wrong
    comparison = Comparison(model, {"dimensions": {}, "threads": 1}, inputs, reference, Tolerance())
    report = comparison.run({"t3": found.astype(np.int8)})
    assert [layer.name for layer in report.layers] == ["t2"]
    return report.verdict()


def test_tensors_are_those_of_the_interpreter(model: Path) -> None:
    assert compared(model, "interpreter") == "1 layer and 1 output agree with the interpreter"
    assert "output 't3'" in compared(model, "interpreter", wrong=1)


@pytest.mark.extra
def test_tensors_are_those_of_litert(model: Path) -> None:
    pytest.importorskip("ai_edge_litert.interpreter")
    assert compared(model, LITERT) == "1 layer and 1 output agree with LiteRT's reference kernels"


def test_litert_runs_its_models_alone(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="LiteRT runs models of TensorFlow Lite alone"):
        check_reference(LITERT, "model.onnx")
    with pytest.raises(OptionError, match="onnxruntime runs ONNX models, not models of TensorFlow Lite"):
        check_reference("onnxruntime", model)
    for name in ("ai_edge_litert", "ai_edge_litert.interpreter"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(OptionError, match="needs ai-edge-litert, which is not installed"):
        check_reference(LITERT, model)
