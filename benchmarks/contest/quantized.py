"""Networks with 8-bit weights and activations, as ONNX Runtime's static quantization writes them: the QDQ form."""

from __future__ import annotations

import functools
import logging
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from models import bert_encoder, mobilenet_v2, random_inputs, resnet18, seeded_light_model
from onnx import version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static  # pyright: ignore[reportUnknownVariableType]
from onnxruntime.quantization.shape_inference import quant_pre_process  # pyright: ignore[reportUnknownVariableType]

from contest.zoo import efficientnet_b0

OPSET = 13
"""The first one whose quantization is by channel."""

SAMPLES = 4
"""Inputs for calibration, which are random as the weights are."""


class RandomInputs(CalibrationDataReader):
    """Some random inputs of a model."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._inputs = self.of(model)

    @staticmethod
    def of(model: onnx.ModelProto) -> list[dict[str, np.ndarray]]:
        """The inputs, always the same ones."""
        random = np.random.default_rng(11)
        return [random_inputs(model, random) for _ in range(SAMPLES)]

    def get_next(self) -> dict[str, np.ndarray] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._inputs.pop() if self._inputs else None


def quantized(build: Callable[[], onnx.ModelProto], form: QuantFormat = QuantFormat.QDQ) -> onnx.ModelProto:
    """
    A model with activations of u8 and weights of i8, by channel where they are filters or matrices.

    Sums of two operands are additions, which ONNX Runtime quantizes.
    """
    model = onnx.ModelProto()
    model.CopyFrom(build())
    for node in model.graph.node:
        if node.op_type == "Sum" and len(node.input) == 2:
            node.op_type = "Add"
    if max(entry.version for entry in model.opset_import if not entry.domain) < OPSET:
        model = version_converter.convert_version(model, OPSET)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger().setLevel(logging.ERROR)  # Advice to those who quantize.
        given, prepared, written = (Path(folder) / name for name in ("given.onnx", "prepared.onnx", "written.onnx"))
        onnx.save(model, given)
        quant_pre_process(given, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            written,
            RandomInputs(model),
            quant_format=form,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        return onnx.shape_inference.infer_shapes(onnx.load(written))


FLOAT: dict[str, Callable[[], onnx.ModelProto]] = {
    "resnet50": functools.partial(seeded_light_model, "resnet50"),
    "resnet18": resnet18,
    "mobilenet_v2": mobilenet_v2,
    "minilm": functools.partial(bert_encoder, layers=6, width=384, heads=12, length=128, vocabulary=30522),
    "bert_base": functools.partial(bert_encoder, layers=12, width=768, heads=12, length=128, vocabulary=30522),
    "efficientnet_b0": efficientnet_b0,
}
"""Name → what builds the network of floats."""

QUANTIZED: dict[str, Callable[[], onnx.ModelProto]] = {
    f"{name}_int8": functools.partial(quantized, build) for name, build in FLOAT.items()
}
"""Name → what builds the model."""
