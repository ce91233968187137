"""Models on several devices: the same results as on one, and most of the work where it is wanted."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from models import GraphBuilder, random_inputs
from partition_models import FULL, SMALL, TABLES, recommendation
from partitioned_runs import check, expected
from xdsl.ir import Operation

from glow_mlir import InferenceSession
from glow_mlir.backends.interpreter.backend import InterpreterBackend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.activations import TanhOp
from glow_mlir.dialects.glow_high.elementwise_math import ExpOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.target import Target
from glow_mlir.driver.pipelines import PLACED, Pipeline, partitioned_pipeline
from glow_mlir.errors import (
    ExecutionError,
    InputError,
    ModelError,
    OptionError,
    UnsupportedError,
    UnsupportedOperatorsError,
)
from glow_mlir.ir.registry import BACKENDS
from glow_mlir.partitioning.report import DeviceShare, shares_of

WAYS = (
    ("cpu,interpreter", "preferred"),
    ("interpreter,own_memory=1,cpu", "preferred"),
    ("cpu,cpu", "pipeline"),
    ("cpu,cpu,own_memory=1", "pipeline"),
    ("interpreter,cpu", "latency"),
    ("cpu,interpreter,own_memory=1,cpu", "pipeline"),
    ("cpu,cpu", "tensor-parallel"),
    ("cpu,cuda,target=emulated-sm_80,cpu", "pipeline"),
)
"""Devices, and how operators are placed on them."""


@pytest.mark.parametrize("family", SMALL)
@pytest.mark.parametrize(("devices", "partition"), WAYS)
def test_model_on_several_devices(family: str, devices: str, partition: str) -> None:
    check(family, devices, partition, is_full=False)


@pytest.mark.long
@pytest.mark.parametrize("family", FULL)
@pytest.mark.parametrize(("devices", "partition"), WAYS)
def test_model_of_full_size_on_several_devices(family: str, devices: str, partition: str) -> None:
    check(family, devices, partition, is_full=True)


@pytest.mark.parametrize("family", SMALL)
def test_preferred_device_has_nearly_all(family: str) -> None:
    preferred, other = check(family, "interpreter,own_memory=1,cpu", "preferred", is_full=False)
    assert preferred.multiply_adds >= 0.95 * (preferred.multiply_adds + other.multiply_adds)
    assert preferred.operators >= 0.8 * (preferred.operators + other.operators)
    assert not preferred.refused
    # Each input there, each output back, and nothing in between.
    model = expected(family, is_full=False)[0]
    assert preferred.transfers <= len(model.graph.input) + len(model.graph.output)


@pytest.mark.parametrize("family", ["resnet", "bert", "recommendation"])
def test_devices_keep_to_their_memory(family: str) -> None:
    model, inputs, _ = expected(family, is_full=False)
    whole = sum(share.constant_bytes for share in check(family, "cpu,interpreter", "preferred", is_full=False))
    activations = 8 * sum(array.nbytes for array in inputs.values()) + 400_000
    half = whole // 2 + activations
    first, second = check(family, f"cpu,memory_bytes={half},cpu", "preferred", is_full=False)
    assert first.constant_bytes <= half
    assert first.constant_bytes + second.constant_bytes >= whole
    assert model.graph.node


class Limited(InterpreterBackend):
    """Executes all operators but some functions, and lowers nothing."""

    name = "limited"

    def supports(self, op: Operation) -> bool:
        return not isinstance(op, ExpOp | TanhOp)

    def pipeline(self, target: str | None = None, profile: bool = False) -> Pipeline:
        return super().pipeline(target, profile).named(self.name)


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that executes little is registered."""
    made = Limited()
    monkeypatch.setitem(BACKENDS.all(), "limited", lambda: made)


TEXT = """
glow_high.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = glow_high.relu %x : tensor<8xf32>
  %b = glow_high.exp %a : tensor<8xf32> loc("growth")
  %c = glow_high.add %b, %x : tensor<8xf32>
  glow_high.return %c
}
"""


@pytest.mark.usefixtures("limited")
def test_operator_that_no_device_executes_is_one_error(tmp_path: Any) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    with pytest.raises(
        UnsupportedOperatorsError, match=r"1 operator is not supported by any of the devices limited:0"
    ) as found:
        InferenceSession(path, devices="limited")
    assert "glow_high.exp" in str(found.value)
    assert "growth" in str(found.value)


@pytest.mark.usefixtures("limited")
def test_refused_operator_goes_to_another_device(tmp_path: Any) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    shares: list[DeviceShare] = []

    def observer(stage: Any, module: Any, seconds: float) -> None:
        if stage.name == PLACED.name:
            shares.extend(shares_of(module))

    session = InferenceSession(path, devices="limited,interpreter", observers=[observer])
    np.testing.assert_allclose(session.run(None, {"x": x})[0], np.exp(np.maximum(x, 0)) + x, rtol=1e-6)
    assert list(shares[0].refused) == ["exp 'growth'"]
    assert shares[1].operators >= 1


def test_placement_file_and_profile(tmp_path: Any) -> None:
    path, placement, profile = (tmp_path / name for name in ("model.mlir", "placement.json", "profile.json"))
    path.write_text(TEXT)
    placement.write_text('{"interpreter:1": ["growth"]}')
    profile.write_text('{"interpreter": {"growth": 1.0}}')
    x = np.ones(8, np.float32)
    devices = "interpreter,interpreter"
    session = InferenceSession(path, devices=devices, placement=str(placement), placement_profile=str(profile))
    np.testing.assert_allclose(session.run(None, {"x": x})[0], np.exp(x) + x, rtol=1e-6)
    for text, reason in (
        ('{"interpreter:1": ["shrinking"]}', "the model has no node 'shrinking'"),
        ('{"cpu:0": ["growth"]}', "there is no device cpu:0"),
        ('{"interpreter:0": ["growth"], "interpreter:1": ["growth"]}', "node 'growth' is on interpreter:0 and on"),
        ("[", "cannot be read"),
    ):
        placement.write_text(text)
        with pytest.raises(OptionError, match=reason):
            InferenceSession(path, devices=devices, placement=str(placement))


def test_what_is_wrong_with_devices_is_told(tmp_path: Any) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"devices": "cpu", "backend": "cpu"}, "devices is for several devices, and the backend is 'cpu'"),
        ({"partition": "latency"}, "partition is for several devices"),
        ({"devices": "cpu", "pipeline": partitioned_pipeline("heterogeneous")}, "which the pipeline replaces"),
        ({"devices": "cpu", "partition": "luck"}, "no partition 'luck'"),
    )
    for keywords, reason in cases:
        with pytest.raises(OptionError, match=reason):
            InferenceSession(path, **keywords)
    with pytest.raises(ModelError, match="does not fit onto the devices"):
        InferenceSession(onnx_with_weights(), devices="interpreter,memory_bytes=10")
    with pytest.raises(InputError, match="input 'x' must be"):
        InferenceSession(path, devices="interpreter,cpu").run(None, {"x": np.zeros(3, np.float32)})


def onnx_with_weights() -> onnx.ModelProto:
    """A small model with weights."""
    return SMALL["recommendation"]()


def test_shared_tables_are_equal_to_the_bit() -> None:
    model = recommendation(rows=9_001, width=32, batch=16)
    inputs = random_inputs(model, np.random.default_rng(1))
    inputs["ids"] = np.random.default_rng(2).integers(-9_001, 9_001, inputs["ids"].shape)
    shares: list[DeviceShare] = []

    def observer(stage: Any, module: Any, seconds: float) -> None:
        if stage.name == PLACED.name:
            shares.extend(shares_of(module))

    devices = "interpreter,interpreter,own_memory=1,interpreter"
    session = InferenceSession(model, devices=devices, partition="tensor-parallel", observers=[observer])
    wanted = InferenceSession(model, backend="interpreter").run(None, inputs)
    np.testing.assert_array_equal(session.run(None, inputs)[0], wanted[0])
    table = 9_001 * 32 * 4
    assert all(share.constant_bytes >= 0.99 * TABLES * table / 3 for share in shares)
    assert sum(share.constant_bytes for share in shares) < 1.1 * TABLES * table
    for wrong in (9_001, -9_002):
        inputs["ids"][3, 2] = wrong
        with pytest.raises(ExecutionError, match="an index is out of range"):
            session.run(None, inputs)


def test_what_is_no_pipeline_is_told(tmp_path: Any) -> None:
    path, placement = tmp_path / "model.mlir", tmp_path / "placement.json"
    path.write_text(TEXT.replace("relu %x : tensor<8xf32>", 'relu %x {glow.device = "interpreter:1"} : tensor<8xf32>'))
    placement.write_text('{"interpreter:0": ["growth"]}')
    with pytest.raises(ModelError, match="@main is no pipeline of stages on interpreter:0, interpreter:1, in this"):
        InferenceSession(path, devices="interpreter,interpreter", partition="pipeline", placement=str(placement))


def placed(observed: list[str]) -> Any:
    """An observer that keeps the text of the placed module."""

    def observer(stage: Any, module: Any, seconds: float) -> None:
        if stage.name == PLACED.name:
            observed.append(str(module))

    return observer


class WithoutProducts(InterpreterBackend):
    """Does not get products."""

    name = "limited"

    def refuses(self, op: Operation, storage: Storage, target: Target) -> str:
        return "a product" if isinstance(op, MatMulOp) else ""

    def pipeline(self, target: str | None = None, profile: bool = False) -> Pipeline:
        return super().pipeline(target, profile).named(self.name)


def test_products_are_shared_by_those_that_compute_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    made = WithoutProducts()
    monkeypatch.setitem(BACKENDS.all(), "limited", lambda: made)
    g = GraphBuilder(0)
    product_ = g.node("MatMul", "x", g.weight(g.rng.standard_normal((512, 512), np.float32)))
    model = g.model({"x": (onnx.TensorProto.FLOAT, (8, 512))}, {product_: (8, 512)})
    x = np.ones((8, 512), np.float32)
    expected_ = InferenceSession(model).run(None, {"x": x})[0]
    texts: list[str] = []
    keywords: dict[str, Any] = {"partition": "tensor-parallel", "observers": [placed(texts)]}
    for devices, count in (("limited,interpreter,interpreter", 2), ("limited,interpreter", 1)):
        session = InferenceSession(model, devices=devices, **keywords)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], expected_, rtol=1e-3, atol=1e-3)
        assert texts[-1].count("glow_high.matmul") == count
    # What a file says is on one device is not shared.
    placement = tmp_path / "placement.json"
    placement.write_text(json.dumps({"interpreter:1": [product_]}))
    InferenceSession(model, devices="interpreter,interpreter", placement=str(placement), **keywords)
    assert texts[-1].count("glow_high.matmul") == 1
    assert 'glow.device = "interpreter:1"' in texts[-1]


def test_state_is_where_it_was_placed_first(tmp_path: Any) -> None:
    path = tmp_path / "model.mlir"
    path.write_text("""
glow_high.placeholder @count : tensor<2xf32> {state}
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.placeholder @y : tensor<2xf32> {output}
glow_high.func @main(@x, @count) {
  %x = glow_high.get @x : tensor<2xf32>
  glow_high.save %x, @count {glow.device = "interpreter:1"}
}
glow_high.func @other(@count, @y) {
  %c = glow_high.get @count {mutable, glow.device = "interpreter:0"} : tensor<2xf32>
  glow_high.save %c, @y
}
""")
    with pytest.raises(ModelError, match="said to be on interpreter:0, and state @count is on interpreter:1"):
        InferenceSession(path, devices="interpreter,interpreter")


def test_sizes_that_data_decide_are_told() -> None:
    g = GraphBuilder(0)
    found = g.node("NonZero", "x")
    model = g.model({"x": (onnx.TensorProto.FLOAT, (4,))}, {found: (1, "count")}, kind=onnx.TensorProto.INT64)
    with pytest.raises(UnsupportedError, match=r"sizes that are known at run time only.*without devices"):
        InferenceSession(model, devices="interpreter,cpu").run(None, {"x": np.ones(4, np.float32)})
