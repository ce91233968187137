"""Networks on every stage of the ladder: text round-trips, and the interpreter gives the same outputs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import mlir_tools
import numpy as np
import onnx
import pytest
from hostile_names import renamed
from models import mobilenet_v2, model_named, random_inputs
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pass_runner import PassRunner
from glow_mlir.driver.pipelines import Stage
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import module_text, parse_module

ARENA_RATIO = 1.1


def printed(module: ModuleOp) -> str:
    """The text of a module with its locations."""
    return module_text(module, locations=True)


MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "mobilenet_v2": lambda: mobilenet_v2(size=64, classes=10, width=0.35),
    "resnet50": lambda: model_named("resnet50"),
}
"""Network → what makes it."""


@cache
def model(name: str) -> onnx.ModelProto:
    """A network whose values have names that are hard on text."""
    return renamed(MODELS[name]())[0]


@pytest.fixture(scope="module", params=["mobilenet_v2", pytest.param("resnet50", marks=pytest.mark.long)])
def network(request: pytest.FixtureRequest) -> str:
    """The name of a network."""
    return request.param


@pytest.fixture(scope="module")
def stages(network: str) -> dict[str, tuple[str, ModuleOp]]:
    """Text and module of a network on each stage."""
    found: dict[str, tuple[str, ModuleOp]] = {}

    def keep(stage: Stage, module: ModuleOp, _: float) -> None:
        found[stage.name] = (printed(module), module.clone())

    Compilation(import_model(model(network)), runner=PassRunner(verify_each=True), observers=[keep]).run()
    return found


def names() -> Iterator[str]:
    """All stages of the ladder."""
    from glow_mlir.backends.interface import get_backend

    return iter(get_backend("cpu").pipeline().stage_names)


@pytest.mark.parametrize("name", list(names()))
def test_text_round_trips(stages: dict[str, tuple[str, ModuleOp]], name: str) -> None:
    """What is printed parses, verifies and prints the same bytes."""
    text, _ = stages[name]
    assert printed(parse_module(text, new_context())) == text


def test_interpreter_agrees_on_every_stage(network: str, stages: dict[str, tuple[str, ModuleOp]]) -> None:
    """The outputs of every stage down to `allocated` are those of the imported graph."""
    inputs = random_inputs(model(network), np.random.default_rng(7))
    (expected,) = run_function(stages["imported"][1], inputs).values()
    for name, (_, module) in stages.items():
        if name not in ("structured", "llvm"):
            (result,) = run_function(module, inputs).values()
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4 * float(np.abs(expected).max()))


def test_arena_is_near_its_lower_bound(stages: dict[str, tuple[str, ModuleOp]]) -> None:
    """The activations region is at most 1.1 times the largest sum of buffers that live at once."""
    from glow_mlir.dialects.glow_low.memory import FuncOp

    _, module = stages["allocated"]
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    size, bound = (function.properties[name].value.data for name in ("activations", "activations_bound"))  # pyright: ignore
    assert bound > 0
    assert size <= ARENA_RATIO * bound


@pytest.mark.extra
def test_mlir_accepts_the_llvm_stage(stages: dict[str, tuple[str, ModuleOp]], tmp_path: Path) -> None:
    """Upstream's `mlir-opt` parses and verifies the LLVM dialect, and `mlir-translate` turns it into LLVM IR."""
    opt, translate = mlir_tools.find_mlir_tool("mlir-opt"), mlir_tools.find_mlir_tool("mlir-translate")
    if opt is None or translate is None:
        pytest.skip("mlir-opt and mlir-translate 22 are not there: run 'make mlir-tools'")
    source = tmp_path / "network.mlir"
    source.write_text(stages["llvm"][0])
    checked = subprocess.run([opt, source], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr[:2000]
    source.write_text(checked.stdout)
    translated = subprocess.run([translate, "--mlir-to-llvmir", source], capture_output=True, text=True, check=False)
    assert translated.returncode == 0, translated.stderr[:2000]
    assert "define i32 @main" in translated.stdout
