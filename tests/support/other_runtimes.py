"""What others compute of an ONNX model: its reference implementation, and onnxruntime without optimizations."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx

Arrays = dict[str, np.ndarray]


def by_reference(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> Arrays:
    """The outputs by name that ONNX's reference implementation computes."""
    from onnx.reference import ReferenceEvaluator

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        evaluator: Any = ReferenceEvaluator(model)
        results: list[Any] = evaluator.run(None, dict(inputs))
    return dict(zip(evaluator.output_names, map(np.asarray, results), strict=True))


def by_onnxruntime(model: onnx.ModelProto | Path, inputs: Mapping[str, np.ndarray]) -> Arrays:
    """The outputs by name that onnxruntime computes, on one thread."""
    import onnxruntime

    options = cast(Any, onnxruntime).SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    session: Any = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    names: list[str] = [output.name for output in session.get_outputs()]
    return dict(zip(names, map(np.asarray, session.run(names, dict(inputs))), strict=True))
