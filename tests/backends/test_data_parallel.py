"""Models whose batch several devices share: the same results as on one, and each device has about its part."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from models import GraphBuilder, bert_encoder, linear
from onnx import TensorProto
from partition_models import recommendation
from quantized_models import NETWORKS, SCHEMES, quantized
from xdsl.ir import Operation

from glow_mlir import InferenceSession
from glow_mlir.backends.interpreter.backend import InterpreterBackend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.target import Target
from glow_mlir.driver.pipelines import PLACED, Pipeline
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.registry import BACKENDS
from glow_mlir.partitioning.report import DeviceShare, shares_of

BATCH = 6

DEVICES = ("cpu,cpu", "cpu,interpreter,own_memory=1,cpu,cpu")
"""Two that have as many samples, and four that have not."""


def convolutions() -> onnx.ModelProto:
    """A small network of convolutions, with a mean of all pixels and a classifier."""
    g = GraphBuilder(0)
    x = g.node("Conv", "x", g.weight(g.rng.standard_normal((8, 3, 3, 3), np.float32)), pads=[1] * 4)
    x = g.node("MaxPool", g.node("Relu", x), kernel_shape=[2, 2], strides=[2, 2])
    x = g.node("Conv", x, g.weight(g.rng.standard_normal((16, 8, 3, 3), np.float32)), pads=[1] * 4)
    x = g.node("Flatten", g.node("GlobalAveragePool", g.node("Relu", x)))
    result = g.node("Softmax", linear(g, x, 16, 10), axis=-1)
    return g.model({"x": (TensorProto.FLOAT, ("N", 3, 12, 12))}, {result: ("N", 10)})


def codes() -> onnx.ModelProto:
    """A network that onnxruntime has quantized for one image, for any number of them."""
    model = quantized(NETWORKS["mobile"](), SCHEMES["qdq-u8"])
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    del model.graph.value_info[:]
    return model


def inputs_of(model: onnx.ModelProto, batch: int) -> dict[str, np.ndarray]:
    """Random inputs of so many samples; numbers of words, and truth values of masks, where they are integers."""
    rng, found = np.random.default_rng(0), dict[str, np.ndarray]()
    for value in model.graph.input:
        shape = (batch, *(dim.dim_value or 16 for dim in value.type.tensor_type.shape.dim[1:]))
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            found[value.name] = rng.standard_normal(shape, np.float32)
        else:
            found[value.name] = rng.integers(0, 2 if value.name == "mask" else 100, shape)
    return found


MODELS: dict[str, Any] = {
    "convolutions": convolutions,
    "bert": lambda: bert_encoder(layers=1, length=16, is_free=True),
    "int8": codes,
    "recommendation": lambda: recommendation(batch=BATCH),
}
"""Family → a small model of it."""


def assert_close(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Fail where results differ by more than the order of sums explains."""
    for array, exact in zip(found, wanted, strict=True):
        np.testing.assert_allclose(array, exact, rtol=1e-6, atol=2e-6 * np.abs(exact).max())


def shares_and(texts: list[str]) -> tuple[list[DeviceShare], Any]:
    """An observer that keeps what each device has, and the text of the placed module."""
    shares: list[DeviceShare] = []

    def observer(stage: Any, module: Any, seconds: float) -> None:
        if stage.name == PLACED.name:
            shares.extend(shares_of(module))
            texts.append(str(module))

    return shares, observer


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("family", MODELS)
def test_model_whose_batch_is_shared(family: str, devices: str) -> None:
    model = MODELS[family]()
    inputs = inputs_of(model, BATCH)
    shares, observer = shares_and([])
    session = InferenceSession(model, devices=devices, partition="data-parallel", observers=[observer])
    wanted = InferenceSession(model).run(None, inputs)
    for _ in range(2):
        assert_close(session.run(None, inputs), wanted)
    least, more = divmod(BATCH, len(shares))
    work = sum(share.multiply_adds for share in shares)
    for number, share in enumerate(shares):
        assert share.multiply_adds == pytest.approx(work * (least + (number < more)) / BATCH, rel=0.01)


def test_each_call_has_a_batch_of_its_own() -> None:
    model = convolutions()
    session, alone = InferenceSession(model, devices="cpu,cpu", partition="data-parallel"), InferenceSession(model)
    for batch in (2, 5, 7):
        inputs = inputs_of(model, batch)
        assert_close(session.run(None, inputs), alone.run(None, inputs))
    with pytest.raises(UnsupportedError, match="has a batch of one sample"):
        session.run(None, inputs_of(model, 1))


def test_a_sample_for_each_of_some_devices() -> None:
    model = convolutions()
    inputs = inputs_of(model, 2)
    texts: list[str] = []
    _, observer = shares_and(texts)
    devices = "interpreter,interpreter,interpreter"
    session = InferenceSession(model, devices=devices, partition="data-parallel", observers=[observer])
    assert_close(session.run(None, inputs), InferenceSession(model).run(None, inputs))
    assert texts[-1].count("glow_high.softmax") == 2


class WithoutProducts(InterpreterBackend):
    """Does not get products."""

    name = "limited"

    def refuses(self, op: Operation, storage: Storage, target: Target) -> str:
        return "a product" if isinstance(op, MatMulOp) else ""

    def pipeline(self, target: str | None = None, profile: bool = False) -> Pipeline:
        return super().pipeline(target, profile).named(self.name)


def product() -> tuple[onnx.ModelProto, str]:
    """A product and what becomes of it, and the name of the product."""
    g = GraphBuilder(0)
    found = g.node("MatMul", "x", g.weight(g.rng.standard_normal((4, 4), np.float32)))
    result = g.node("Tanh", found)
    return g.model({"x": (TensorProto.FLOAT, (8, 4))}, {result: (8, 4)}), found


def test_devices_that_refuse_an_operator_have_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    made = WithoutProducts()
    monkeypatch.setitem(BACKENDS.all(), "limited", lambda: made)
    (model, _), x = product(), np.ones((8, 4), np.float32)
    wanted = InferenceSession(model).run(None, {"x": x})
    for devices, count in (("limited,interpreter,interpreter", 2), ("limited,interpreter", 1)):
        texts: list[str] = []
        _, observer = shares_and(texts)
        session = InferenceSession(model, devices=devices, partition="data-parallel", observers=[observer])
        assert_close(session.run(None, {"x": x}), wanted)
        assert texts[-1].count("glow_high.matmul") == texts[-1].count("glow_high.tanh") == count


def test_what_a_file_says_is_on_one_device_stays_whole(tmp_path: Any) -> None:
    (model, name), x = product(), np.ones((8, 4), np.float32)
    placement = tmp_path / "placement.json"
    placement.write_text(json.dumps({"interpreter:1": [name]}))
    texts: list[str] = []
    keywords: dict[str, Any] = {"partition": "data-parallel", "placement": str(placement)}
    _, observer = shares_and(texts)
    session = InferenceSession(model, devices="interpreter,interpreter", observers=[observer], **keywords)
    assert_close(session.run(None, {"x": x}), InferenceSession(model).run(None, {"x": x}))
    assert texts[-1].count("glow_high.matmul") == 1
    assert texts[-1].count("glow_high.tanh") == 2


def test_what_mixes_samples_is_told() -> None:
    g = GraphBuilder(0)
    mean = g.node("ReduceMean", "x", axes=[0], keepdims=1)
    result = g.node("Sub", "x", mean)
    model = g.model({"x": (TensorProto.FLOAT, (8, 4))}, {result: (8, 4)}, opset=13)
    with pytest.raises(UnsupportedError, match=r"node 'reducemean_0'.*mixes the 8 samples.*partition='latency'"):
        InferenceSession(model, devices="cpu,cpu", partition="data-parallel")
