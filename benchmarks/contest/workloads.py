"""The models of the benchmark, written as ONNX files with their inputs and their count of operations."""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import models
import numpy as np
import onnx
from decoder import decoder
from google.protobuf.message import DecodeError
from models import GraphBuilder, bert_encoder, lstm_network, mobilenet_v2, random_inputs, resnet18, seeded_light_model
from onnx import TensorProto, numpy_helper

from contest import quantized, zoo
from contest.engines import TFLITE_FILE
from contest.operations import flops
from glow_mlir import GlowError
from glow_mlir.frontends.tflite.model import TfliteModel

ELEMENTS = 1 << 24
"""Elements of the operand of an elementwise chain: 64 MiB in, 64 MiB out."""

CHEAP = (
    *(("Mul", 1.01), ("Add", 0.1), ("Relu", None), ("Sub", 0.2), ("Mul", 0.99)),
    *(("Abs", None), ("Min", 3.0), ("Max", 0.01), ("Mul", 1.5), ("Add", -0.3)),
)
MATHEMATICAL = (("Mul", 0.7), ("Tanh", None), ("Add", 0.1), ("Sigmoid", None), ("Mul", 1.3), ("Exp", None))


def chain(steps: Sequence[tuple[str, float | None]]) -> onnx.ModelProto:
    """A chain of elementwise operators, each with the operand before and maybe a number."""
    g = GraphBuilder(0)
    x = "input"
    for kind, number in steps:
        x = g.node(kind, x, *([] if number is None else [g.weight(np.full(1, number, np.float32))]))
    return g.model({"input": (TensorProto.FLOAT, [ELEMENTS])}, {x: [ELEMENTS]})


def in_batches(build: Callable[[], onnx.ModelProto], size: int, axis: int = 0) -> onnx.ModelProto:
    """A model of one example made one of several: the dimension `axis` of inputs, outputs and what is reshaped."""
    model = onnx.ModelProto()
    model.CopyFrom(build())
    graph = model.graph
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[axis].dim_value = size
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for constant in graph.initializer:
        if constant.name in shapes and numpy_helper.to_array(constant)[axis] == 1:
            # Zero keeps the dimension as it is.
            kept = numpy_helper.to_array(constant).copy()
            kept[axis] = 0
            constant.CopyFrom(numpy_helper.from_array(kept, constant.name))
    del graph.value_info[:]
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


WORKLOADS: dict[str, Callable[[], onnx.ModelProto]] = {
    "resnet50": functools.partial(seeded_light_model, "resnet50"),
    "resnet50_b8": functools.partial(in_batches, functools.partial(seeded_light_model, "resnet50"), 8),
    "resnet18": resnet18,
    "vgg19": functools.partial(seeded_light_model, "vgg19"),
    "mobilenet_v2": mobilenet_v2,
    "minilm": functools.partial(bert_encoder, layers=6, width=384, heads=12, length=128, vocabulary=30522),
    "bert_base": functools.partial(bert_encoder, layers=12, width=768, heads=12, length=128, vocabulary=30522),
    "lstm": functools.partial(lstm_network, layers=2, steps=64, width=256, hidden=256),
    "chain_cheap": functools.partial(chain, CHEAP),
    "chain_math": functools.partial(chain, MATHEMATICAL),
}
"""Name → what builds the model. All have 32-bit floats, and one example unless the name has another number."""


EQUAL_LAYERS = {f"decoder{layers}": functools.partial(decoder, layers=layers, width=256) for layers in (22, 44)}
"""Decoders of many equal layers, of which compilation should take little more time than of few."""

GLOW_PAPER = {
    "resnet50_v2_b8": functools.partial(in_batches, zoo.resnet50_v2, 8),
    "vgg19_b8": functools.partial(in_batches, functools.partial(seeded_light_model, "vgg19"), 8),
}
"""What Glow's paper measures beside `resnet50_b8` (Rotem et al. 2018)."""

GROUPS = {"glow_paper": GLOW_PAPER, "zoo": zoo.ZOO, "int8": quantized.QUANTIZED, "equal_layers": EQUAL_LAYERS}
"""Name of further models together → the models."""

BUILT = WORKLOADS | zoo.ZOO | quantized.QUANTIZED | EQUAL_LAYERS | GLOW_PAPER
"""All models that are built here."""


@dataclass(frozen=True)
class Workload:
    """
    A model on disk; `flops` counts a multiply-add as two, in convolutions, products of matrices and recurrences, and is
    `None` where shapes are unknown.
    """

    name: str
    model: Path
    inputs: Path
    outputs: list[str]
    flops: int | None


class NotAWorkload(ValueError):
    """The benchmark cannot run what was asked for; the message says why, in one line."""


def names_of(asked: Sequence[str]) -> list[str]:
    """Names and files of models, those of `GROUPS` for all of theirs; raises `NotAWorkload` for what is neither."""
    names = [name for one in asked for name in GROUPS.get(one, (one,))]
    for name in names:
        if name not in BUILT and not Path(name).is_file():
            known = ", ".join((*WORKLOADS, *(word for group, models in GROUPS.items() for word in (group, *models))))
            raise NotAWorkload(f"{name} is neither a file nor one of {known}")
    short = Counter(map(short_name, names))
    if double := [name for name, count in short.items() if count > 1]:
        raise NotAWorkload(f"{short[double[0]]} models are called {double[0]}; rename a file")
    return names


def short_name(name: str) -> str:
    """What a model is called in tables: files that are all called model, after their folder."""
    path = Path(name)
    if name in BUILT:
        return name
    return path.resolve().parent.name if path.stem == "model" else path.stem


def write_workload(name: str, folder: Path) -> Workload:
    """
    The model with seeded inputs, as files in a folder below `folder`, which is written where it does not exist yet.

    A name is one of `WORKLOADS` or the zoo, or the path of an ONNX file: there, free dimensions of inputs are 1 and
    integers 0 or 1, so that they are inside all tables. A file of TensorFlow Lite keeps its sizes. The folder's name
    has a digest of the model, or of the code that builds it. Raises `NotAWorkload` for files that cannot be measured.
    """
    if name.endswith(TFLITE_FILE):
        return _tflite_workload(Path(name), folder)
    model = None if name in BUILT else _from_file(Path(name))
    content = b"" if model is None else model.SerializeToString(deterministic=True)
    digest = hashlib.sha256(content).hexdigest()[:12] if model else sources_digest()
    home = folder / f"{short_name(name)}-{digest}"
    paths = [home / file for file in ("model.onnx", "inputs.npz", "description.json")]
    if not paths[-1].exists():
        print(f"{short_name(name)}: preparing the model", file=sys.stderr)
        built = model or BUILT[name]()
        inputs = random_inputs(built, np.random.default_rng(7))
        if model is not None:
            inputs = {name: value & 1 if value.dtype.kind in "iu" else value for name, value in inputs.items()}
        home.mkdir(parents=True, exist_ok=True)
        paths[0].write_bytes(built.SerializeToString(deterministic=True))
        np.savez(paths[1], allow_pickle=False, **inputs)
        facts = {"outputs": [value.name for value in built.graph.output], "flops": flops(built)}
        paths[-1].write_text(json.dumps(facts))
    facts = json.loads(paths[-1].read_text())
    return Workload(short_name(name), paths[0], paths[1], facts["outputs"], facts["flops"])


def _tflite_workload(path: Path, folder: Path) -> Workload:
    """A file of TensorFlow Lite with random inputs: codes of the whole range, and floats from 0 to 1."""
    try:
        model = TfliteModel(path)
        signature = model.signature(model.default_sizes())
    except GlowError as error:
        raise NotAWorkload(str(error)) from error
    content, random = path.read_bytes(), np.random.default_rng(7)
    home = folder / f"{short_name(str(path))}-{hashlib.sha256(content).hexdigest()[:12]}"
    workload = Workload(
        short_name(str(path)),
        home / "model.tflite",
        home / "inputs.npz",
        [item.name for item in signature.outputs],
        None,
    )
    if not workload.inputs.exists():
        home.mkdir(parents=True, exist_ok=True)
        workload.model.write_bytes(content)
        arrays = {item.name: _random(random, item.numpy_dtype, item.numbers) for item in signature.inputs}
        np.savez(workload.inputs, allow_pickle=False, **arrays)
    return workload


def _random(random: np.random.Generator, dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return random.random(shape).astype(dtype)


def _from_file(path: Path) -> onnx.ModelProto:
    """The model of a file with all its weights inside; raises `NotAWorkload`."""
    try:
        model = onnx.load(path)
        for value in model.graph.input:
            if value.type.tensor_type.elem_type in (TensorProto.UNDEFINED, TensorProto.STRING):
                raise NotAWorkload(f"{path}: input '{value.name}' is no tensor of numbers")
            for dimension in value.type.tensor_type.shape.dim:
                if not dimension.HasField("dim_value"):
                    dimension.dim_value = 1
        return onnx.shape_inference.infer_shapes(model)
    except (OSError, DecodeError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise NotAWorkload(f"{path}: {' '.join(str(error).split())}") from error


@functools.cache
def sources_digest() -> str:
    """A digest of what decides how the models come out."""
    digest = hashlib.sha256(f"{np.__version__} {onnx.__version__}".encode())
    here = Path(__file__)
    sources = (
        here,
        here.with_name("operations.py"),
        *(Path(str(module.__file__)) for module in (models, zoo, quantized)),
    )
    for path in sources:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
