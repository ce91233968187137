"""Models for tests and benchmarks: the light CNNs of the onnx package with seeded weights, and others built here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LIGHT = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
"""The CNNs that the onnx package ships without their weights, which are constant fills."""

LARGE = ("bvlc_alexnet", "densenet121", "inception_v2", "resnet50", "vgg19", "zfnet512")
"""Those for which a short run has no time."""


def light_model(name: str) -> onnx.ModelProto:
    """One of the `LIGHT` models as it is shipped."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return onnx.load(folder / f"light_{name}.onnx")


@cache
def seeded_light_model(name: str, seed: int = 0) -> onnx.ModelProto:
    """One of the `LIGHT` models with He weights, calibrated batch-norm and a confident classifier."""
    model = light_model(name)
    replace_fills(model, np.random.default_rng(seed))
    calibrate_batch_norm(model, np.random.default_rng(seed + 1))
    scale_logits(model, np.random.default_rng(seed + 2))
    return model


def he(rng: np.random.Generator, shape: tuple[int, ...], fan_in: int) -> np.ndarray:
    """Normal weights of variance 2 / fan_in (He et al. 2015)."""
    return (rng.standard_normal(shape) * np.sqrt(2.0 / fan_in)).astype(np.float32)


def _filter(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    sizes = [size for size in shape if size != 1] or [1]
    return he(rng, shape, int(np.prod(sizes[1:])) if len(sizes) > 1 else sizes[0])


def _small(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return (rng.standard_normal(shape) * 0.1).astype(np.float32)


def _factor(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.5, 1.5, shape).astype(np.float32)


ROLES: dict[tuple[str, int], Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    ("Conv", 1): _filter,
    ("Conv", 2): _small,
    ("Gemm", 1): _filter,
    ("Gemm", 2): _small,
    ("BatchNormalization", 1): _factor,
    ("BatchNormalization", 2): _small,
    ("BatchNormalization", 3): _small,
    ("BatchNormalization", 4): _factor,
    ("Mul", 1): _factor,
    ("Add", 1): _small,
}
"""(operator, operand) → how the constant there is drawn."""


def replace_fills(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    """Put seeded initializers in the place of the constant fills of a light model."""
    model.ir_version = 8
    graph = model.graph
    shapes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    uses: dict[str, tuple[str, int]] = {}
    through: dict[str, str] = {}
    for node in graph.node:
        for position, name in enumerate(node.input):
            uses.setdefault(name, (node.op_type, position))
        if node.op_type in ("Unsqueeze", "Reshape"):
            through[node.input[0]] = node.output[0]
    kept: list[onnx.NodeProto] = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        name = node.output[0]
        shape = tuple(int(size) for size in shapes[node.input[0]])
        seen = name
        while uses[seen] not in ROLES:
            seen = through[seen]
        draw = ROLES[uses[seen]]
        graph.initializer.append(numpy_helper.from_array(draw(rng, shape), name))
    del graph.node[:]
    graph.node.extend(kept)
    real = [value for value in graph.input if value.name not in shapes]
    del graph.input[:]
    graph.input.extend(real)
    drop_unused_initializers(graph)


def drop_unused_initializers(graph: onnx.GraphProto) -> None:
    """Remove initializers that no node reads."""
    used = {name for node in graph.node for name in node.input}
    weights = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(weights)


def calibrate_batch_norm(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    """Set mean and variance of each batch-norm to those of its input on one random image."""
    import onnxruntime

    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    norms = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
    if not norms:
        return
    nodes: list[onnx.NodeProto] = []
    for node in probe.graph.node:
        if node.op_type != "BatchNormalization":
            nodes.append(node)
            continue
        out = node.output[0]
        mean, centred = f"{out}__mean", f"{out}__centred"
        nodes += [
            helper.make_node("ReduceMean", [node.input[0]], [mean], axes=[0, 2, 3], keepdims=1),
            helper.make_node("Sub", [node.input[0], mean], [centred]),
            helper.make_node("ReduceSumSquare", [centred], [f"{out}__sum"], axes=[0, 2, 3], keepdims=1),
            helper.make_node("InstanceNormalization", [node.input[0], *node.input[1:3]], [out], epsilon=1e-5),
        ]
        for name in (mean, f"{out}__sum"):
            probe.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    del probe.graph.node[:]
    probe.graph.node.extend(nodes)
    drop_unused_initializers(probe.graph)
    inputs = random_inputs(model, rng)
    session = onnxruntime.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in cast("list[Any]", session.get_outputs())]
    arrays = cast("list[np.ndarray]", session.run(None, inputs))
    values = dict(zip(names, arrays, strict=True))
    sizes = _spatial_sizes(probe, norms)
    initializers = {t.name: t for t in model.graph.initializer}
    for node in norms:
        mean = values[f"{node.output[0]}__mean"].reshape(-1)
        variance = values[f"{node.output[0]}__sum"].reshape(-1) / sizes[node.output[0]]
        for name, array in ((node.input[3], mean), (node.input[4], np.maximum(variance, 1e-3))):
            initializers[name].CopyFrom(numpy_helper.from_array(array.astype(np.float32), name))


def _spatial_sizes(probe: onnx.ModelProto, norms: list[onnx.NodeProto]) -> dict[str, int]:
    """Elements a channel at each batch-norm, by shape inference."""
    inferred = onnx.shape_inference.infer_shapes(probe)
    shapes = {
        value.name: [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
        for value in (*inferred.graph.value_info, *inferred.graph.output)
    }
    return {node.output[0]: int(np.prod(shapes[node.output[0]][2:])) for node in norms}


def scale_logits(model: onnx.ModelProto, rng: np.random.Generator, deviation: float = 6.0) -> None:
    """Scale the last weights so that the logits deviate by `deviation`; the softmax is then far from uniform."""
    import onnxruntime

    softmax = next((node for node in model.graph.node if node.op_type == "Softmax"), None)
    if softmax is None:
        return
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.append(helper.make_tensor_value_info(softmax.input[0], TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
    logits = np.asarray(session.run([softmax.input[0]], random_inputs(model, rng))[0])
    last = next(node for node in reversed(model.graph.node) if node.op_type in ("Gemm", "Conv"))
    factor = np.float32(deviation / max(float(np.std(logits)), 1e-6))
    for tensor in model.graph.initializer:
        if tensor.name in last.input[1:3]:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * factor, tensor.name))


def random_inputs(model: onnx.ModelProto, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Seeded inputs for every input of a model: normal floats, small integers, true masks."""
    initializers = {t.name for t in model.graph.initializer}
    inputs: dict[str, np.ndarray] = {}
    for value in model.graph.input:
        if value.name in initializers:
            continue
        described = value.type.tensor_type
        shape = [dimension.dim_value for dimension in described.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(described.elem_type)
        if dtype.kind == "f":
            inputs[value.name] = rng.standard_normal(shape).astype(dtype)
        else:
            inputs[value.name] = rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
    return inputs


class GraphBuilder:
    """Collects nodes and initializers of a model built by hand."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def weight(self, array: np.ndarray | np.generic) -> str:
        """An initializer; returns its name."""
        name = f"w{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """A node; returns the name of its first output, `name` itself, others are `name:1`, …"""
        name = f"{kind.lower()}_{len(self.nodes)}"
        names = [name, *(f"{name}:{index}" for index in range(1, outputs))]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=name, **attributes))
        return name

    def model(
        self,
        inputs: Mapping[str, tuple[int, Sequence[int | str]]],
        outputs: Mapping[str, Sequence[int | str]],
        opset: int = 17,
        kind: int = TensorProto.FLOAT,
    ) -> onnx.ModelProto:
        """The model; `inputs` maps names to element type and shape, `kind` is the element type of the outputs."""
        graph = helper.make_graph(
            self.nodes,
            "graph",
            [helper.make_tensor_value_info(name, type_, shape) for name, (type_, shape) in inputs.items()],
            [helper.make_tensor_value_info(name, kind, shape) for name, shape in outputs.items()],
            self.initializers,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
        onnx.checker.check_model(model)
        return model


def _conv_norm(
    g: GraphBuilder, x: str, channels: int, outputs: int, size: int, stride: int, group: int, act: bool
) -> str:
    weights = g.weight(_filter(g.rng, (outputs, channels // group, size, size)))
    pad = size // 2
    x = g.node("Conv", x, weights, strides=[stride] * 2, pads=[pad] * 4, group=group, kernel_shape=[size] * 2)
    parts = [draw(g.rng, (outputs,)) for draw in (_factor, _small, _small, _factor)]
    x = g.node("BatchNormalization", x, *(g.weight(part) for part in parts))
    if act:
        x = g.node("Clip", x, g.weight(np.float32(0.0)), g.weight(np.float32(6.0)))
    return x


def _scaled(channels: int, width: float) -> int:
    """The channels of a narrower network: the nearest multiple of eight, unless that takes more than a tenth away."""
    found = max(8, int(channels * width + 4) // 8 * 8)
    return found + 8 if found < 0.9 * channels * width else found


@cache
def mobilenet_v2(seed: int = 0, size: int = 224, classes: int = 1000, width: float = 1.0) -> onnx.ModelProto:
    """
    MobileNetV2 (Sandler et al. 2018) with seeded weights and calibrated batch-norm.

    `width` multiplies all channels but the last 1280, which are rounded to multiples of eight.
    """
    g = GraphBuilder(seed)
    channels = _scaled(32, width)
    x = _conv_norm(g, "input", 3, channels, 3, 2, 1, act=True)
    for expand, outputs, repeats, first in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        outputs = _scaled(outputs, width)
        for index in range(repeats):
            stride = first if index == 0 else 1
            hidden = channels * expand
            y = _conv_norm(g, x, channels, hidden, 1, 1, 1, act=True) if expand != 1 else x
            y = _conv_norm(g, y, hidden, hidden, 3, stride, hidden, act=True)
            y = _conv_norm(g, y, hidden, outputs, 1, 1, 1, act=False)
            x = g.node("Add", x, y) if stride == 1 and channels == outputs else y
            channels = outputs
    x = _conv_norm(g, x, channels, 1280, 1, 1, 1, act=True)
    x = g.node("Flatten", g.node("GlobalAveragePool", x))
    weights, bias = g.weight(he(g.rng, (classes, 1280), 1280)), g.weight(_small(g.rng, (classes,)))
    logits = g.node("Gemm", x, weights, bias, transB=1)
    model = g.model({"input": (TensorProto.FLOAT, [1, 3, size, size])}, {logits: [1, classes]}, opset=13)
    calibrate_batch_norm(model, np.random.default_rng(seed + 1))
    return model


def _relu_conv_norm(g: GraphBuilder, x: str, channels: int, outputs: int, size: int, stride: int) -> str:
    return g.node("Relu", _conv_norm(g, x, channels, outputs, size, stride, 1, act=False))


@cache
def resnet18(seed: int = 0, size: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """ResNet-18 (He et al. 2016) with seeded weights and calibrated batch-norm."""
    g = GraphBuilder(seed)
    x = _relu_conv_norm(g, "input", 3, 64, 7, 2)
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for outputs, first in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (first, 1):
            y = _relu_conv_norm(g, x, channels, outputs, 3, stride)
            y = _conv_norm(g, y, outputs, outputs, 3, 1, 1, act=False)
            if channels != outputs:
                x = _conv_norm(g, x, channels, outputs, 1, stride, 1, act=False)
            x = g.node("Relu", g.node("Add", x, y))
            channels = outputs
    x = g.node("Flatten", g.node("GlobalAveragePool", x))
    weights, bias = g.weight(he(g.rng, (classes, channels), channels)), g.weight(_small(g.rng, (classes,)))
    logits = g.node("Gemm", x, weights, bias, transB=1)
    model = g.model({"input": (TensorProto.FLOAT, [1, 3, size, size])}, {logits: [1, classes]}, opset=13)
    calibrate_batch_norm(model, np.random.default_rng(seed + 1))
    return model


def linear(g: GraphBuilder, x: str, inputs: int, outputs: int) -> str:
    """A dense layer: a product with weights, and a bias."""
    product = g.node("MatMul", x, g.weight(he(g.rng, (inputs, outputs), 2 * inputs)))
    return g.node("Add", product, g.weight(_small(g.rng, (outputs,))))


def layer_norm(g: GraphBuilder, x: str, width: int) -> str:
    """A layer normalization of the last axis."""
    return g.node("LayerNormalization", x, g.weight(_factor(g.rng, (width,))), g.weight(_small(g.rng, (width,))))


def _gelu(g: GraphBuilder, x: str) -> str:
    erf = g.node("Erf", g.node("Div", x, g.weight(np.float32(np.sqrt(2.0)))))
    return g.node("Mul", g.node("Mul", x, g.node("Add", erf, g.weight(np.float32(1.0)))), g.weight(np.float32(0.5)))


def _attention(g: GraphBuilder, x: str, mask: str, batch: int, length: int, width: int, heads: int) -> str:
    depth = width // heads
    split = g.weight(np.array([batch, length, heads, depth], np.int64))
    q, k, v = (
        g.node("Transpose", g.node("Reshape", linear(g, x, width, width), split), perm=perm)
        for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    )
    scores = g.node("Div", g.node("MatMul", q, k), g.weight(np.float32(np.sqrt(depth))))
    weights = g.node("Softmax", g.node("Add", scores, mask), axis=-1)
    merged = g.node("Transpose", g.node("MatMul", weights, v), perm=[0, 2, 1, 3])
    joined = g.node("Reshape", merged, g.weight(np.array([batch, length, width], np.int64)))
    return linear(g, joined, width, width)


@cache
def bert_encoder(
    seed: int = 0,
    layers: int = 2,
    width: int = 128,
    heads: int = 4,
    length: int = 64,
    vocabulary: int = 1000,
    is_free: bool = False,
) -> onnx.ModelProto:
    """
    A BERT-like encoder (Devlin et al. 2018): token ids and mask in, hidden states out.

    It is for one sequence of that length, or `is_free`: for any number of sequences, up to that long.
    """
    g = GraphBuilder(seed)
    tokens = g.node("Gather", g.weight(g.rng.standard_normal((vocabulary, width)).astype(np.float32)), "ids", axis=0)
    positions = g.weight(g.rng.standard_normal((length, width)).astype(np.float32))
    sizes: Sequence[int | str] = [1, length]
    batch, kept = 1, length
    if is_free:
        sizes, batch, kept = ["batch", "length"], 0, 0
        zero, one, two = (g.weight(np.array([place], np.int64)) for place in (0, 1, 2))
        end = g.node("Slice", g.node("Shape", "ids"), one, two)
        positions = g.node("Slice", positions, zero, end)
    x = g.node("Add", tokens, positions)
    x = layer_norm(g, x, width)
    mask = g.node("Unsqueeze", g.node("Cast", "mask", to=TensorProto.FLOAT), g.weight(np.array([1, 2], np.int64)))
    mask = g.node("Mul", g.node("Sub", g.weight(np.float32(1.0)), mask), g.weight(np.float32(-10000.0)))
    for _ in range(layers):
        x = layer_norm(g, g.node("Add", x, _attention(g, x, mask, batch, kept, width, heads)), width)
        hidden = linear(g, _gelu(g, linear(g, x, width, 4 * width)), 4 * width, width)
        x = layer_norm(g, g.node("Add", x, hidden), width)
    kind = int(TensorProto.INT64)
    return g.model({"ids": (kind, sizes), "mask": (kind, sizes)}, {x: [*sizes, width]})


def _recurrent(kind: str, gates: int, seed: int, layers: int, steps: int, width: int, hidden: int) -> onnx.ModelProto:
    g = GraphBuilder(seed)
    x, size = "input", width
    squeeze = g.weight(np.array([1], np.int64))
    for _ in range(layers):
        weights = (
            g.rng.uniform(-1, 1, (1, gates * hidden, size)),
            g.rng.uniform(-1, 1, (1, gates * hidden, hidden)),
            g.rng.uniform(-1, 1, (1, 2 * gates * hidden)),
        )
        names = [g.weight((w / np.sqrt(hidden)).astype(np.float32)) for w in weights]
        x = g.node("Squeeze", g.node(kind, x, *names, hidden_size=hidden), squeeze)
        size = hidden
    return g.model({"input": (TensorProto.FLOAT, [steps, 1, width])}, {x: [steps, 1, hidden]}, opset=14)


@cache
def lstm_network(seed: int = 0, layers: int = 2, steps: int = 16, width: int = 32, hidden: int = 48) -> onnx.ModelProto:
    """Stacked LSTM layers over a sequence."""
    return _recurrent("LSTM", 4, seed, layers, steps, width, hidden)


@cache
def gru_network(seed: int = 0, layers: int = 2, steps: int = 16, width: int = 32, hidden: int = 48) -> onnx.ModelProto:
    """Stacked GRU layers over a sequence."""
    return _recurrent("GRU", 3, seed, layers, steps, width, hidden)


BUILT: dict[str, Callable[[], onnx.ModelProto]] = {
    "mobilenet_v2": mobilenet_v2,
    "resnet18": resnet18,
    "bert_encoder": bert_encoder,
    "lstm": lstm_network,
    "gru": gru_network,
}
"""Models built here, by name."""


def model_named(name: str) -> onnx.ModelProto:
    """A seeded model of `LIGHT` or `BUILT`."""
    return BUILT[name]() if name in BUILT else seeded_light_model(name)
