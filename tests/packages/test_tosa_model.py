"""What Arm's reference model computes of programs of TOSA, and what their NPU compiler says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from breadth import examples
from execute import Case, assert_same, module_of
from hypothesis import given, settings
from models import mobilenet_v2, random_inputs
from operator_cases import CASES
from quantized_models import SCHEMES, quantized_model
from random_codes import quantized_case
from random_graphs import JUMPING, STEPS, Graph, graphs
from tosa_backend.tools import VELA
from tosa_backend.vela import estimate
from tosa_cases import NAME, by_interpreter, compiled, need_tools, offer_tosa, on_device, operations, pair
from tosa_forms import FORMS, numbers, whole

from glow_mlir import Quantization
from glow_mlir.api.profiling import profiled
from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.driver.pipelines import quantizing
from glow_mlir.errors import ExecutionError, UnsupportedOperatorsError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.options.declaration import parameters

pytestmark = pytest.mark.extra


@pytest.fixture(autouse=True, scope="module")
def backend() -> None:
    """The backend, and Arm's programs."""
    patch = pytest.MonkeyPatch()
    offer_tosa(patch)
    need_tools(patch)


@pytest.mark.parametrize("name", CASES)
def test_operator(name: str) -> None:
    case = CASES[name]
    inputs = case.inputs()
    try:
        found = on_device(case.module(False), inputs)
    except UnsupportedOperatorsError:
        return  # test_tosa_conversion.py says which.
    assert_same(by_interpreter(case.module(False), inputs, list(found)), found, case.tolerance)


@pytest.mark.parametrize("name", FORMS)
def test_form(name: str) -> None:
    _, case = FORMS[name]
    module, inputs = module_of(case)
    found = on_device(module.clone(), inputs)
    assert_same(by_interpreter(module, inputs, list(found)), found)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("network", ["residual", "mobile", "joined"])
def test_quantized_network_has_the_same_bits(network: str, scheme: str) -> None:
    model = quantized_model(network, scheme)
    device, interpreter = pair(model)
    for seed in range(2):
        inputs = random_inputs(model, np.random.default_rng(seed))
        for found, wanted in zip(device.run(None, inputs), interpreter.run(None, inputs), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_mobilenet_in_codes_is_on_the_device_as_a_whole(tmp_path: Path) -> None:
    model, profile = mobilenet_v2(size=96, classes=10, width=0.35), tmp_path / "profile.json"
    profiled(model, [random_inputs(model, np.random.default_rng(0))], backend="interpreter").write(profile)
    quantize = Quantization(profile)
    device, interpreter = pair(model, quantize)
    for seed in range(2):
        inputs = random_inputs(model, np.random.default_rng(seed))
        np.testing.assert_array_equal(device.run(None, inputs)[0], interpreter.run(None, inputs)[0])
    pipeline = quantizing(get_backend(NAME).pipeline(), parameters(quantize))
    function = compiled(import_model(model), pipeline)
    types = {str(value.type) for op in function.program.walk() for value in op.results}
    assert not any("xf32>" in type_ for type_ in types)
    names = operations(function)
    # One for each of 52 convolutions, the last product, and sums of windows.
    assert names.count("conv2d") + names.count("depthwise_conv2d") == 54
    function.write(tmp_path / "program.tosa")
    assert estimate(tmp_path / "program.tosa").on_cpu == 0


@pytest.mark.parametrize("accelerator", ["ethos-u85-256", "ethos-u55-128"])
def test_npu_takes_all_of_a_quantized_network(tmp_path: Path, accelerator: str) -> None:
    need_tools(pytest.MonkeyPatch(), VELA)
    file = tmp_path / "program.tosa"
    compiled(import_model(quantized_model("residual", "qdq-i8"))).write(file)
    found = estimate(file, accelerator)
    assert found.on_cpu == 0 < found.on_npu
    assert 10_000 < found.cycles < 100_000
    assert sum(found.memory.values()) > 20_000
    assert 550_000 < found.multiply_adds < 580_000
    assert f"{accelerator}: {found.cycles} cycles" in str(found)
    assert "100 % of" in str(found)


def test_npu_takes_no_floats(tmp_path: Path) -> None:
    need_tools(pytest.MonkeyPatch(), VELA)
    file = tmp_path / "program.tosa"
    compiled(module_of(FORMS["lines"][1])[0]).write(file)
    with pytest.raises(ExecutionError, match=r"vela failed: .*Invalid argument"):
        estimate(file)


@pytest.mark.parametrize("seed", range(40))
def test_random_codes(seed: int) -> None:
    case = quantized_case(seed)
    if case.dimensions:
        return
    try:
        device, interpreter = pair(case.model)
    except UnsupportedOperatorsError:
        return  # Codes of 16 bits.
    for call in case.calls:
        for found, wanted in zip(device.run(None, dict(call)), interpreter.run(None, dict(call)), strict=True):
            assert_same({"": wanted}, {"": found})


@settings(max_examples=examples(40))
@given(graphs(steps=[step for step in STEPS if step not in JUMPING]))
def test_random_graph(graph: Graph) -> None:
    found = on_device(graph.module.clone(), graph.inputs)
    assert_same(by_interpreter(graph.module, graph.inputs, list(found)), found, 2e-4)


def test_index_out_of_range_fails() -> None:
    module, inputs = module_of(Case(GatherOp, numbers(7, 2), np.asarray([0, 9], np.int64)))
    with pytest.raises(ExecutionError, match="tosa_reference_model failed"):
        on_device(module, inputs)


def test_integers_of_64_bits_have_to_fit_into_32() -> None:
    module, inputs = module_of(Case(GatherOp, whole(7, 2), np.asarray([0, 1 << 40], np.int64)))
    with pytest.raises(ExecutionError, match="larger than what TOSA holds"):
        on_device(module, inputs)
