"""
Models that onnxruntime has optimized and saved give what it computes, by the instructions of the models that they were.

With `ORT_ENABLE_ALL`, which is its default, convolutions are in its blocked layout; below that, operators are fused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import models
import numpy as np
import onnx
import onnxruntime
import pytest
import quantized_models
import written_models
from breadth import long_ones
from drawn_models import Case
from onnxruntime_cases import check_case
from text_models import TEXTS
from vision_models import VISION

from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model

LEVELS = ("BASIC", "EXTENDED", "LAYOUT", "ALL")


def optimized(model: onnx.ModelProto, level: str, folder: Path) -> onnx.ModelProto:
    """What onnxruntime saves of a model."""
    runtime, path = cast(Any, onnxruntime), folder / "optimized.onnx"
    options = runtime.SessionOptions()
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(path)


def of_sizes(model: onnx.ModelProto) -> Case:
    """A model of known sizes, called once."""
    return Case(model, [models.random_inputs(model, np.random.default_rng(0))])


def of_codes(network: str, scheme: str) -> Case:
    """A model of codes."""
    case = of_sizes(quantized_models.quantized_model(network, scheme))
    return Case(case.model, case.calls, codes=True)


STATIC: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "mobilenet_v2": lambda: models.mobilenet_v2(size=64, width=0.5),
    "resnet18": lambda: models.resnet18(size=64),
    "bert_encoder": lambda: models.bert_encoder(),
    "lstm_network": lambda: models.lstm_network(),
}
"""Models of known sizes."""


def written(make: Callable[[], written_models.Case]) -> Case:
    """A model that is written by hand, of sizes that calls choose, called once."""
    case = make()
    has_codes = any("QuantizeLinear" in node.op_type for node in case.model.graph.node)
    return Case(case.model, [dict(case.inputs)], codes=has_codes)


WRITTEN = {name: make for name, make in {**VISION, **TEXTS}.items() if make().reference is None}
"""Models that are written by hand; of the others, onnxruntime has no kernels."""

CASES: Mapping[str, Callable[[], Case]] = {
    **{name: (lambda make=make: of_sizes(make())) for name, make in STATIC.items()},
    **{name: (lambda make=make: written(make)) for name, make in WRITTEN.items()},
    **{
        f"{network} {scheme}": (lambda network=network, scheme=scheme: of_codes(network, scheme))
        for network in quantized_models.NETWORKS
        for scheme in quantized_models.SCHEMES
    },
}


@cache
def case_of(name: str) -> Case:
    """A model and calls of it."""
    return CASES[name]()


def is_long(pair: tuple[str, str]) -> bool:
    """Whether a pair is left out of short runs: those of other levels write much the same, and schemes too."""
    name, level = pair
    return level not in ("EXTENDED", "ALL") or (" " in name and not name.endswith(("qdq-u8", "qoperator")))


@pytest.mark.parametrize("pair", long_ones([(name, level) for name in CASES for level in LEVELS], is_long), ids=str)
def test_results_are_those_of_onnxruntime(pair: tuple[str, str], tmp_path: Path) -> None:
    name, level = pair
    case = case_of(name)
    saved = optimized(case.model, level, tmp_path)
    check_case(Case(saved, case.calls, case.dimensions, case.codes, case.may_fail))


def instructions(model: onnx.ModelProto, until: str) -> Counter[str]:
    """The instructions of a model, as they are or by their names, without those that cost nothing."""
    module = Compilation(import_model(model)).run(until)
    free = ("glow_low.view", "glow_low.constant")
    found = [op for op in module.walk() if op.name.startswith("glow_low.") and op.name not in free]
    if until != "selected":
        return Counter(op.name for op in found)
    return Counter(NAMES.sub("", str(op).partition("\n")[0]) for op in found)


NAMES = re.compile(r"[%@#][\w.]+|loc\(.*\)")
"""What instructions of other models may have in another way."""


@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet18"])
def test_machine_code_is_that_of_the_model_before(name: str, tmp_path: Path) -> None:
    """Kernels, tiles, packing and epilogues are the same: the blocked layout leaves no trace."""
    model = STATIC[name]()
    assert instructions(optimized(model, "ALL", tmp_path), "selected") == instructions(model, "selected")


@pytest.mark.parametrize("level", ["EXTENDED", "ALL"])
@pytest.mark.parametrize("name", ["bert_encoder", "lstm_network"])
def test_as_many_instructions_as_before(name: str, level: str, tmp_path: Path) -> None:
    """Of each kind: what onnxruntime fuses is fused here as well, from parts."""
    model = STATIC[name]()
    assert instructions(optimized(model, level, tmp_path), "stacked") == instructions(model, "stacked")


def test_layouts_and_fusions_are_written(tmp_path: Path) -> None:
    """Or else the tests here would say nothing."""
    kinds = {
        f"{node.domain}.{node.op_type}"
        for name in ("mobilenet_v2", "resnet18", "bert_encoder", "relative positions", "mobile qdq-u8", "joined qdq-u8")
        for node in optimized(case_of(name).model, "ALL", tmp_path).graph.node
    }
    blocked = {f"com.microsoft.nchwc.{kind}" for kind in ("Conv", "MaxPool", "GlobalAveragePool", "ReorderOutput")}
    fused = {"FusedMatMul", "SkipLayerNormalization", "Gelu", "QLinearConv", "NhwcMaxPool", "QLinearAdd", "QGemm"}
    assert kinds >= blocked | {f"com.microsoft.{kind}" for kind in fused} | {".SimplifiedLayerNormalization"}
