"""onnxruntime's quantized attention and LSTM: the numbers that onnxruntime computes."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from models import lstm_network, random_inputs
from onnx import helper, numpy_helper
from onnx_models import message
from onnxruntime.quantization import QuantType, quantize_dynamic  # pyright: ignore[reportUnknownVariableType]

from glow_mlir import InferenceSession
from glow_mlir.errors import GlowError
from glow_mlir.frontends.onnx.importer import import_model

RANDOM = np.random.default_rng(9)
HEADS, DEPTH, BATCH, LENGTH = 2, 8, 2, 5
WIDTH = HEADS * DEPTH

Operands = Mapping[str, np.ndarray]


def by_onnxruntime(model: onnx.ModelProto, inputs: Operands) -> list[np.ndarray]:
    """What onnxruntime computes."""
    runtime = cast(Any, onnxruntime)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(inputs))


def check(model: onnx.ModelProto, inputs: Operands, tolerance: float = 1e-5) -> None:
    """Fail where one of our backends and onnxruntime disagree."""
    expected = by_onnxruntime(model, inputs)
    for backend in ("interpreter", "cpu"):
        found = InferenceSession(model, backend=backend, cache=False).run(None, dict(inputs))
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)


# ---- attention ----------------------------------------------------------------------------------------------------


NAMES = ("x", "w", "b", "x_scale", "w_scale", "mask", "x_zero", "w_zero", "past")


def attention(operands: Operands, outputs: int = 1, **attributes: Any) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one QAttention whose weights are constants, and the inputs."""
    names = [name if name in operands else "" for name in NAMES]
    while not names[-1]:
        names.pop()
    given = {name: array for name, array in operands.items() if name in ("x", "mask", "past")}
    constants = [numpy_helper.from_array(array, name) for name, array in operands.items() if name not in given]
    results = ["y", "present"][:outputs]
    node = helper.make_node("QAttention", names, results, "heads", domain="com.microsoft", **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in given.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in results],
        constants,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), given


def codes(scales: int = 1, sign: type[np.generic] = np.int8) -> dict[str, np.ndarray]:
    """
    Operands of all that is needed: so many scales of weights of a sign, with zero points.

    Scores are near 1, so that their rounding is far below what results may differ by. Weights with a sign have 7 bits:
    onnxruntime's sums of two products of u8 and i8 end at 16 bits on processors without VNNI.
    """
    least, most = (0, 256) if sign is np.uint8 else (-64, 64)
    random = np.random.default_rng(scales)
    shape = (scales,) if scales > 1 else ()
    return {
        "x": random.integers(0, 256, (BATCH, LENGTH, 12)).astype(np.uint8),
        "w": random.integers(least, most, (12, 3 * WIDTH)).astype(sign),
        "b": random.normal(size=3 * WIDTH).astype(np.float32),
        "x_scale": np.float32(0.02) * np.ones((), np.float32),
        "w_scale": (0.002 * random.uniform(0.5, 1.5, shape)).astype(np.float32),
        "x_zero": np.array(120, np.uint8),
        "w_zero": np.full(shape, 128 if sign is np.uint8 else 0, sign),
    }


PAST = RANDOM.normal(size=(2, BATCH, HEADS, 3, DEPTH)).astype(np.float32)
MASKS: Mapping[str, np.ndarray] = {
    "keys": np.array([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1]], np.int32),
    "queries and keys": RANDOM.integers(0, 2, (BATCH, LENGTH, LENGTH)).astype(np.int32),
    "ends": np.array([3, 5], np.int32),
    "ends and begins": np.array([3, 5, 0, 2], np.int32),
}


@pytest.mark.parametrize("scales", [1, 3 * WIDTH])
@pytest.mark.parametrize("sign", [np.int8, np.uint8])
def test_attention_is_that_of_onnxruntime(scales: int, sign: type[np.generic]) -> None:
    check(*attention(codes(scales, sign), num_heads=HEADS))
    check(*attention(codes(scales, sign), num_heads=HEADS, unidirectional=1, scale=0.3))


@pytest.mark.parametrize("form", MASKS)
def test_masks_hide_keys(form: str) -> None:
    check(*attention({**codes(), "mask": MASKS[form]}, num_heads=HEADS, mask_filter_value=-5000.0))


def test_a_past_has_keys_and_values_in_front() -> None:
    check(*attention({**codes(), "past": PAST}, outputs=2, num_heads=HEADS, unidirectional=1))


def test_attention_that_is_not_supported_is_refused_in_one_line() -> None:
    wrong = {
        "7 heads": {"num_heads": 7},
        "rotary positions": {"num_heads": HEADS, "do_rotary": 1},
    }
    for reason, attributes in wrong.items():
        with pytest.raises(GlowError) as caught:
            import_model(attention(codes(), **attributes)[0])
        assert reason in message(caught.value)
    with pytest.raises(GlowError) as caught:
        import_model(attention({**codes(), "mask": np.ones(7, np.int32)}, num_heads=HEADS)[0])
    assert "a mask of the shape (7,) is not supported" in message(caught.value)
    flat = {**codes(), "x": np.zeros((BATCH, 12), np.uint8)}
    with pytest.raises(GlowError) as caught:
        import_model(attention(flat, num_heads=HEADS)[0])
    assert message(caught.value).endswith(
        "node 'heads': operand 0 of QAttention has 2 axes (hint: it is [batch, length, elements])"
    )


# ---- LSTM ---------------------------------------------------------------------------------------------------------


def dynamic(model: onnx.ModelProto, kind: Any, per_channel: bool) -> onnx.ModelProto:
    """The model with weights that onnxruntime has rounded, to 7 bits as in `codes`, and products of codes."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given, written = Path(folder) / "given.onnx", Path(folder) / "written.onnx"
        onnx.save(model, given)
        quantize_dynamic(given, written, weight_type=kind, per_channel=per_channel, reduce_range=True)
        return onnx.load(written)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", [QuantType.QUInt8, QuantType.QInt8])
def test_lstms_of_codes_are_those_of_onnxruntime(kind: Any, per_channel: bool) -> None:
    """A number half-way between two codes may become either."""
    model = dynamic(lstm_network(steps=4), kind, per_channel)
    assert any(node.op_type == "DynamicQuantizeLSTM" for node in model.graph.node)
    check(model, random_inputs(model, np.random.default_rng(2)), 2e-3)


def lstm(direction: str, inputs: int = 7, shape: Sequence[int] = (3, 1, 5), **attributes: Any) -> onnx.ModelProto:
    """A model of one DynamicQuantizeLSTM with all operands but those that are refused."""
    count, size, width = (2 if direction == "bidirectional" else 1), 6, 5
    constants = {
        "w": RANDOM.integers(0, 256, (count, width, 4 * size)).astype(np.uint8),
        "r": RANDOM.integers(0, 256, (count, size, 4 * size)).astype(np.uint8),
        "b": RANDOM.normal(size=(count, 8 * size)).astype(np.float32),
        "lengths": np.array([3], np.int32),
        "h": RANDOM.normal(size=(count, 1, size)).astype(np.float32) * np.float32(0.5),
        "c": RANDOM.normal(size=(count, 1, size)).astype(np.float32),
        "p": np.zeros((count, 3 * size), np.float32),
        **{name: np.full(count, 0.01, np.float32) for name in ("w_scale", "r_scale")},
        **{name: np.full(count, 128, np.uint8) for name in ("w_zero", "r_zero")},
    }
    names = ["x", "w", "r", "b", "lengths", "h", "c", "p", "w_scale", "w_zero", "r_scale", "r_zero"]
    kept = [name if place < 4 or place > 7 or place in (5, 6) or inputs > 7 else "" for place, name in enumerate(names)]
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        kept,
        ["y", "yh", "yc"],
        "cells",
        domain="com.microsoft",
        hidden_size=size,
        direction=direction,
        **attributes,
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [onnx.ValueInfoProto(name=name) for name in ("y", "yh", "yc")],
        [numpy_helper.from_array(array, name) for name, array in constants.items() if name in kept],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions_and_first_states(direction: str) -> None:
    check(lstm(direction), {"x": RANDOM.normal(size=(3, 1, 5)).astype(np.float32)}, 2e-3)


def test_lstms_that_are_not_supported_are_refused_in_one_line() -> None:
    wrong = {
        "sequence_lens is not supported": lstm("forward", 8),
        "clip is not supported": lstm("forward", clip=1.0),
        "an input of the shape (0, 1, 5) has no range of numbers": lstm("bidirectional", shape=(0, 1, 5)),
        "operand 0 of DynamicQuantizeLSTM has 2 axes (hint: it is [steps, batch, elements])": lstm(
            "forward", shape=(3, 5)
        ),
        "other gate functions": lstm("forward", activations=["Relu", "Tanh", "Tanh"]),
    }
    for reason, model in wrong.items():
        with pytest.raises(GlowError) as caught:
            import_model(model)
        assert reason in message(caught.value)


# ---- embeddings ---------------------------------------------------------------------------------------------------


def embedding(has_segments: bool, has_mask: bool) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one QEmbedLayerNormalization with tables of 16 elements a row, and its inputs."""
    words = ("words", "places", "segments", "gamma", "beta")
    operands: dict[str, np.ndarray] = {"ids": RANDOM.integers(0, 9, (BATCH, LENGTH)).astype(np.int32)}
    operands["kinds"] = RANDOM.integers(0, 2, (BATCH, LENGTH)).astype(np.int32)
    for name, shape in zip(words, ((9, 16), (7, 16), (2, 16), (16,), (16,)), strict=True):
        operands[name] = RANDOM.integers(0, 256, shape).astype(np.uint8)
    operands["mask"] = np.array([[1, 1, 1, 0, 0], [1, 2, 1, -1, 1]], np.int32)
    operands |= {f"{name}_scale": RANDOM.uniform(0.01, 0.02, ()).astype(np.float32) for name in words}
    operands |= {f"{name}_zero": RANDOM.integers(100, 150, ()).astype(np.uint8) for name in words}
    left_out = {"kinds", "segments", "segments_scale", "segments_zero"} if not has_segments else set[str]()
    left_out |= set() if has_mask else {"mask"}
    names = [name if name not in left_out else "" for name in operands]
    given = {name: array for name, array in operands.items() if array.dtype == np.int32 and name not in left_out}
    node = helper.make_node("QEmbedLayerNormalization", names, ["y", "count"], domain="com.microsoft", epsilon=1e-5)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, onnx.TensorProto.INT32, array.shape) for name, array in given.items()],
        [onnx.ValueInfoProto(name=name) for name in ("y", "count")],
        [numpy_helper.from_array(array, name) for name, array in operands.items() if name not in (*given, *left_out)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), given


@pytest.mark.parametrize("has_segments", [False, True])
@pytest.mark.parametrize("has_mask", [False, True])
def test_embeddings_of_codes_are_those_of_onnxruntime(has_segments: bool, has_mask: bool) -> None:
    check(*embedding(has_segments, has_mask))
