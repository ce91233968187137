"""The models of the benchmark, written as ONNX files with their inputs and their count of operations."""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import models
import numpy as np
import onnx
from models import GraphBuilder, bert_encoder, lstm_network, mobilenet_v2, random_inputs, resnet18, seeded_light_model
from onnx import TensorProto, numpy_helper

from contest import zoo
from contest.operations import flops

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


def in_batches(build: Callable[[], onnx.ModelProto], size: int) -> onnx.ModelProto:
    """A model of one example made one of several: the first dimension of inputs, outputs and what is reshaped."""
    model = onnx.ModelProto()
    model.CopyFrom(build())
    graph = model.graph
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = size
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for constant in graph.initializer:
        if constant.name in shapes:
            # Zero keeps the dimension as it is.
            kept = np.array([0, *numpy_helper.to_array(constant)[1:]], np.int64)
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


@dataclass(frozen=True)
class Workload:
    """A model on disk; `flops` counts a multiply-add as two, in convolutions, products of matrices and LSTMs."""

    name: str
    model: Path
    inputs: Path
    outputs: list[str]
    flops: int


class NotAWorkload(ValueError):
    """The benchmark cannot run what was asked for; the message says why."""


def names_of(asked: Sequence[str]) -> list[str]:
    """Names and files of models, with `zoo` for all of its networks; raises `NotAWorkload` for what is neither."""
    names = [name for one in asked for name in (zoo.ZOO if one == "zoo" else (one,))]
    for name in names:
        if name not in WORKLOADS | zoo.ZOO and not Path(name).is_file():
            known = ", ".join((*WORKLOADS, "zoo", *zoo.ZOO))
            raise NotAWorkload(f"{name} is neither a file nor one of {known}")
    return names


def write_workload(name: str, folder: Path) -> Workload:
    """
    The model with seeded inputs, as files in a folder below `folder`, which is written where it does not exist yet.

    A name is one of `WORKLOADS` or the zoo, or the path of an ONNX file. The folder's name has a digest of that file,
    or of the code that builds the models.
    """
    built = WORKLOADS | zoo.ZOO
    digest = sources_digest() if name in built else hashlib.sha256(Path(name).read_bytes()).hexdigest()[:12]
    short = name if name in built else Path(name).stem
    home = folder / f"{short}-{digest}"
    model_path, inputs, description = home / "model.onnx", home / "inputs.npz", home / "description.json"
    if not description.exists():
        print(f"{short}: preparing the model", file=sys.stderr)
        model = built[name]() if name in built else _with_shapes(Path(name))
        home.mkdir(parents=True, exist_ok=True)
        model_path.write_bytes(model.SerializeToString(deterministic=True))
        np.savez(inputs, allow_pickle=False, **random_inputs(model, np.random.default_rng(7)))
        facts = {"outputs": [value.name for value in model.graph.output], "flops": flops(model)}
        description.write_text(json.dumps(facts))
    facts = json.loads(description.read_text())
    return Workload(short, model_path, inputs, facts["outputs"], facts["flops"])


def _with_shapes(path: Path) -> onnx.ModelProto:
    """The model of a file with all its weights inside; dimensions of inputs that are open become 1."""
    model = onnx.load(path)
    for value in model.graph.input:
        for dimension in value.type.tensor_type.shape.dim:
            if not dimension.HasField("dim_value"):
                dimension.dim_value = 1
    return onnx.shape_inference.infer_shapes(model)


@functools.cache
def sources_digest() -> str:
    """A digest of what decides how the models come out."""
    digest = hashlib.sha256(f"{np.__version__} {onnx.__version__}".encode())
    for path in (Path(models.__file__), Path(__file__), Path(zoo.__file__), Path(__file__).with_name("operations.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
