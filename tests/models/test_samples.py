"""One sample of a batch that is huge, infinite or no number leaves the bits of all others as they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from influences import Arrays, influences
from models import GraphBuilder, bert_encoder, linear, lstm_network, mobilenet_v2, random_inputs, resnet18
from onnx import TensorProto

from contest.workloads import in_batches
from glow_mlir.api.onnxruntime.inference_session import InferenceSession


def perceptron(rows: int, size: int = 512) -> onnx.ModelProto:
    """Dense layers on the rows of a matrix, which are samples."""
    g = GraphBuilder(0)
    x = g.node("Relu", linear(g, "x", size, size))
    return g.model({"x": (int(TensorProto.FLOAT), [rows, size])}, {linear(g, x, size, size): [rows, size]})


def flattened(batch: int, rows: int = 64, size: int = 256) -> onnx.ModelProto:
    """Dense layers on a matrix with the rows of all samples."""
    g = GraphBuilder(0)
    flat = g.node("Reshape", "x", g.weight(np.array([-1, size], np.int64)))
    x = g.node("Relu", linear(g, flat, size, size))
    y = g.node("Reshape", linear(g, x, size, size), g.weight(np.array([batch, rows, size], np.int64)))
    return g.model({"x": (int(TensorProto.FLOAT), [batch, rows, size])}, {y: [batch, rows, size]})


def time_first(batch: int, steps: int = 64, size: int = 256) -> onnx.ModelProto:
    """Dense layers on steps of which each has a row of every sample."""
    g = GraphBuilder(0)
    x = g.node("Transpose", "x", perm=[1, 0, 2])
    x = g.node("Relu", linear(g, x, size, size))
    y = g.node("Transpose", linear(g, x, size, size), perm=[1, 0, 2])
    return g.model({"x": (int(TensorProto.FLOAT), [batch, steps, size])}, {y: [batch, steps, size]})


def encoder() -> onnx.ModelProto:
    """An encoder whose products are large enough for every algorithm."""
    return bert_encoder(layers=1, width=256, heads=4, length=64)


MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], int]] = {
    "perceptron": (lambda: perceptron(64), 0),
    "flattened": (lambda: flattened(3), 0),
    "time_first": (lambda: time_first(8), 0),
    "bert_encoder": (lambda: in_batches(encoder, 3), 0),
    "resnet18": (lambda: in_batches(lambda: resnet18(size=64), 2), 0),
    "mobilenet_v2": (lambda: in_batches(lambda: mobilenet_v2(size=64), 3), 0),
    "lstm": (lambda: in_batches(lambda: lstm_network(width=128, hidden=128), 3, axis=1), 1),
}
"""Models of several samples, and the axis along which those lie."""


@pytest.mark.parametrize("name", MODELS)
def test_samples_do_not_see_each_other(name: str) -> None:
    build, axis = MODELS[name]
    model = build()
    session = InferenceSession(model, cache=False)
    names = [output.name for output in session.get_outputs()]

    def run(inputs: Arrays) -> Arrays:
        return dict(zip(names, session.run(None, inputs), strict=True))

    assert influences(run, random_inputs(model, np.random.default_rng(0)), axis) == []
