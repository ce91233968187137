"""Pipelines are values: printed, edited, taken by sessions, and extended by backends of other packages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
import pytest
from models import GraphBuilder, bert_encoder, random_inputs
from onnx import TensorProto
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.backends.cpu.backend import CpuBackend
from glow_mlir.backends.interface import get_backend, named_pipeline, named_pipelines
from glow_mlir.driver.compiler import Compilation, Observer
from glow_mlir.driver.pass_runner import PassRunner
from glow_mlir.driver.pipelines import ESSENTIAL, OPTIMIZE, Pipeline, Stage, configured, parse_pipeline
from glow_mlir.errors import OptionError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir import registry, universe

SMALL = Pipeline("small", (Stage.of("first", "cse,dce", "cse"), Stage.of("second", "cse", "stable")))


def text(pipeline: Pipeline) -> str:
    """The passes of a pipeline, with `|` between its stages."""
    return "|".join(",".join(map(str, stage.specs)) for stage in pipeline.stages)


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        (SMALL, "cse,dce,cse|cse,stable"),
        (SMALL.until("first"), "cse,dce,cse"),
        (SMALL.without("cse"), "dce|stable"),
        (SMALL.without("dce", "stable"), "cse,cse|cse"),
        (SMALL.before("cse", "canonicalize"), "canonicalize,cse,dce,cse|cse,stable"),
        (SMALL.before("cse", "canonicalize", stage="second"), "cse,dce,cse|canonicalize,cse,stable"),
        (SMALL.after("cse", "canonicalize"), "cse,dce,cse|cse,canonicalize,stable"),
        (SMALL.after("cse", "a{x=1},b", stage="first"), "cse,dce,cse,a{x=1},b|cse,stable"),
        (SMALL.replace("cse", "a", stage="first"), "a,dce,a|cse,stable"),
        (SMALL.replace("cse", configured("a", x=1)), "a{x=1},dce,a{x=1}|a{x=1},stable"),
        (SMALL.replace("cse"), "dce|stable"),
        (SMALL.then(Stage.of("third")), "cse,dce,cse|cse,stable|"),
    ],
)
def test_edits(edited: Pipeline, expected: str) -> None:
    assert text(edited) == expected
    assert text(SMALL) == "cse,dce,cse|cse,stable"


CPU = get_backend("cpu").pipeline()


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({spec.name for spec in CPU.specs} - ESSENTIAL))
def test_each_pass_can_be_left_out(name: str) -> None:
    """Kernels execute what a network with convolutions, attention and data movement becomes without one pass."""
    runner = PassRunner(verify_each=True)
    Compilation(import_model(varied_network()), disable=[name], runner=runner).run(until="allocated")


@cache
def varied_network() -> onnx.ModelProto:
    """A small network in which most passes find something to do."""
    g = GraphBuilder(0)
    scalar = g.weight(np.float32(2.0))
    kernel = g.weight(g.rng.standard_normal((4, 4, 3, 3)).astype(np.float32))
    x = g.node("Conv", g.node("Pad", "x", g.weight(np.array([0, 0, 1, 1] * 2))), kernel)
    x = g.node("Clip", g.node("BatchNormalization", x, *[g.weight(np.ones(4, np.float32))] * 4), scalar)
    x = g.node("Concat", x, g.node("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), axis=1)
    x = g.node("Slice", x, *(g.weight(np.array(range_)) for range_ in ([-1], [-9], [1], [-2])))
    x = g.node("Resize", x, "", g.weight(np.array([1, 1, 2, 2], np.float32)))
    rows = g.node("Reshape", g.node("Transpose", x, perm=[0, 2, 3, 1]), g.weight(np.array([2, -1, 4])))
    scores = g.node("Div", g.node("MatMul", rows, g.node("Transpose", rows, perm=[0, 2, 1])), scalar)
    x = g.node("MatMul", g.node("Softmax", scores), rows)
    x = g.node("Sub", g.node("Pow", x, scalar), g.node("Gather", x, g.weight(np.array([0])), axis=1))
    outputs = {g.node("Expand", x, g.weight(np.array([2, 2, 64, 4]))): [2, 2, 64, 4], rows: [2, 64, 4]}
    return g.model({"x": (TensorProto.FLOAT, [2, 4, 4, 4])}, outputs)


def test_mistakes_are_told() -> None:
    with pytest.raises(OptionError, match=r"there is no pass 'dse' in pipeline 'small'"):
        SMALL.without("dse")
    with pytest.raises(OptionError, match=r"there is no pass 'dce' in stage 'second' of pipeline 'small'"):
        SMALL.before("dce", "cse", stage="second")
    with pytest.raises(OptionError, match=r"no stage 'third'"):
        SMALL.until("third")
    with pytest.raises(OptionError, match=r"no stage 'third'"):
        SMALL.after("cse", "dce", stage="third")
    with pytest.raises(OptionError, match=r"the pass 'allocate' cannot be left out"):
        get_backend("cpu").pipeline().without("allocate")
    with pytest.raises(OptionError, match=r"no pipeline 'gpu'"):
        named_pipeline("gpu")
    with pytest.raises(OptionError, match=r"there is no pass 'a'"):
        SMALL.replace("cse", "a").passes()


@pytest.mark.parametrize(("name", "target"), [("optimize", "scalar"), ("cpu", "scalar"), ("interpreter", "host")])
def test_text_of_a_pipeline_parses_back(name: str, target: str) -> None:
    pipeline = named_pipelines(target)[name]
    assert named_pipeline(name, target) == pipeline
    assert parse_pipeline(str(pipeline)).passes == pipeline.passes()


def test_options_are_read() -> None:
    pipeline = get_backend("cpu").pipeline("scalar", profile=True)
    assert pipeline.option("assign-target", "target", "host") == "scalar"
    assert pipeline.option("glow-low-to-scf", "profile", False) is True
    assert OPTIMIZE.option("glow-low-to-scf", "profile", False) is False


def test_options_are_set_where_the_pass_stands() -> None:
    pipeline = get_backend("cpu").pipeline("scalar").with_options("assign-target", accuracy="strict")
    assert pipeline.option("assign-target", "accuracy", "default") == "strict"
    assert pipeline.option("assign-target", "target", "host") == "scalar"
    assert pipeline.with_options("no-such-pass", x=1) == pipeline


MODEL = bert_encoder(layers=1, length=8)


def constants(observed: list[int]) -> list[Observer]:
    """An observer that counts the constants of the optimized graph."""

    def observe(stage: Stage, module: ModuleOp, seconds: float) -> None:
        if stage.name == "optimized":
            observed.append(sum(op.name == "glow_high.constant" for op in module.walk()))

    return [observe]


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own for compiled models."""
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path))


@pytest.mark.usefixtures("empty_cache")
def test_session_leaves_passes_out_and_caches_that_apart() -> None:
    inputs = random_inputs(MODEL, np.random.default_rng(0))
    whole: list[int] = []
    ablated: list[int] = []
    (expected,) = InferenceSession(MODEL, observers=constants(whole)).run(None, inputs)
    chosen = ["remove-unused-storage", "eliminate-copies"]
    session = InferenceSession(MODEL, disable=chosen, observers=constants(ablated))
    assert whole
    assert ablated > whole
    np.testing.assert_allclose(session.run(None, inputs)[0], expected, rtol=1e-4, atol=1e-4)
    assert not InferenceSession(MODEL, disable=chosen[::-1]).compile_seconds


@pytest.mark.usefixtures("empty_cache")
def test_session_knows_two_accuracies_and_caches_them_apart() -> None:
    InferenceSession(MODEL)
    assert InferenceSession(MODEL, accuracy="strict").compile_seconds
    assert not InferenceSession(MODEL, accuracy="strict").compile_seconds
    for backend in ("cpu", "interpreter"):
        with pytest.raises(OptionError, match="no accuracy 'loose'"):
            InferenceSession(MODEL, backend=backend, accuracy="loose")


def test_session_takes_a_pipeline() -> None:
    inputs = random_inputs(MODEL, np.random.default_rng(0))
    (expected,) = InferenceSession(MODEL).run(None, inputs)
    pipeline = get_backend("cpu").pipeline(profile=True).without("eliminate-copies").after("schedule", "cse,dce")
    session = InferenceSession(MODEL, pipeline=pipeline, cache=False)
    np.testing.assert_allclose(session.run(None, inputs)[0], expected, rtol=1e-4, atol=1e-4)
    assert session.machine_entry.entry.profile
    low = InferenceSession(MODEL, backend="interpreter", pipeline=pipeline.until("allocated"))
    np.testing.assert_allclose(low.run(None, inputs)[0], expected, rtol=1e-4, atol=1e-4)


def test_session_refuses_what_contradicts_a_pipeline() -> None:
    pipeline = get_backend("cpu").pipeline()
    with pytest.raises(OptionError, match="does not end with the stages allocated, structured, llvm"):
        InferenceSession(MODEL, pipeline=pipeline.until("allocated"))
    with pytest.raises(OptionError, match="sets target and profile itself"):
        InferenceSession(MODEL, pipeline=pipeline, profile=True)


RAN: list[str] = []
"""What the pass of the other package has seen."""


@dataclass(frozen=True)
class NotePass(ModulePass):
    """Notes the operators of a module."""

    name = "note"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        RAN.extend(inner.name for inner in op.walk())


class OtherBackend(CpuBackend):
    """The CPU with a pass of its own, and copies where they were."""

    name: ClassVar[str] = "other"

    def pipeline(self, target: str | None = None, profile: bool = False) -> Pipeline:
        return super().pipeline(target, profile).without("eliminate-copies").after("schedule", "note")


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A backend and a pass as another package would register them."""
    monkeypatch.setitem(registry.BACKENDS.all(), "other", OtherBackend)
    monkeypatch.setitem(universe.OWN_PASSES, "note", lambda: NotePass)
    RAN.clear()
    yield "other"
    RAN.clear()


def test_backend_of_another_package_has_its_own_passes(other: str) -> None:
    assert "other" in named_pipelines()
    compilation = Compilation(import_model(MODEL), backend=other)
    assert "eliminate-copies" not in str(compilation.ladder)
    compilation.run("allocated")
    assert "glow_high.matmul" in RAN
