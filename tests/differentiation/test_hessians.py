"""Products of Hessian and vector, as gradients of gradients, are those of PyTorch's double backward."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from gradients import Arrays, Emit, differentiated, gradient_module, run_machine_code
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import GeluOp, ReluOp, TanhOp
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import SqrtOp
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.normalization import LayerNormalizationOp, LogSoftmaxOp
from glow_mlir.dialects.glow_high.pooling import MaxPoolOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp, ReduceSumOp
from glow_mlir.frontends.builder.emission import over_all
from glow_mlir.interpreter.machine import run_function

Values = dict[str, SSAValue]
Tensors = Mapping[str, Any]
Shapes = Mapping[str, tuple[int, ...]]

EPSILON = 1e-3
"""Of normalizations."""

TIME, WIDTH, HEADS = 5, 6, 2


@dataclass(frozen=True)
class Network:
    """A loss of data and parameters: by our operators, and by PyTorch's."""

    data: Shapes
    parameters: Shapes
    ours: Callable[[Emit, Values], SSAValue]
    theirs: Callable[[Any, Tensors], Any]


def cross_entropy(emit: Emit, scores: SSAValue, wanted: SSAValue) -> SSAValue:
    """Minus the sum of the logarithms of probabilities, each times how much it is wanted."""
    return emit(
        MulOp, over_all(ReduceSumOp, emit(MulOp, emit(LogSoftmaxOp, scores), wanted), emit), emit.splat(-1, scores)
    )


def their_cross_entropy(torch: Any, scores: Any, wanted: Any) -> Any:
    """The same of PyTorch."""
    return -(torch.log_softmax(scores, -1) * wanted).sum()


def perceptron(emit: Emit, v: Values) -> SSAValue:
    hidden = emit(TanhOp, emit(MatMulOp, v["x"], v["w0"], v["b0"]))
    hidden = emit(GeluOp, emit(MatMulOp, hidden, v["w1"], v["b1"]))
    return cross_entropy(emit, emit(MatMulOp, hidden, v["w2"]), v["wanted"])


def their_perceptron(torch: Any, v: Tensors) -> Any:
    hidden = torch.tanh(v["x"] @ v["w0"] + v["b0"])
    hidden = torch.nn.functional.gelu(hidden @ v["w1"] + v["b1"])
    return their_cross_entropy(torch, hidden @ v["w2"], v["wanted"])


def convolutional(emit: Emit, v: Values) -> SSAValue:
    """Convolutions, a normalization of the batch, ReLU, a pool and a linear layer."""
    image = emit(ConvOp, v["x"], v["f0"], None, layout="channels_first", pads=(1, 1, 1, 1))
    axes = (0, 2, 3)
    centred = emit(SubOp, image, emit(ReduceMeanOp, image, axes=axes))
    variance = emit(ReduceMeanOp, emit(MulOp, centred, centred), axes=axes)
    deviation = emit(SqrtOp, emit(AddOp, variance, emit.splat(EPSILON, variance)))
    scaled = emit(AddOp, emit(MulOp, emit(DivOp, centred, deviation), v["scale"]), v["offset"])
    pooled = emit(MaxPoolOp, emit(ReluOp, scaled), layout="channels_first", kernel_shape=(2, 2), strides=(2, 2))
    image = emit(TanhOp, emit(ConvOp, pooled, v["f1"], v["b1"], layout="channels_first", strides=(2, 1)))
    return cross_entropy(emit, emit(MatMulOp, emit(ReshapeOp, image, shape=(2, 12)), v["w"]), v["wanted"])


def their_convolutional(torch: Any, v: Tensors) -> Any:
    image = torch.conv2d(v["x"], v["f0"], padding=1)
    scale, offset = v["scale"].flatten(), v["offset"].flatten()
    scaled = torch.nn.functional.batch_norm(image, None, None, scale, offset, True, 0.1, EPSILON)
    image = torch.conv2d(torch.max_pool2d(scaled.relu(), 2), v["f1"], v["b1"], (2, 1)).tanh()
    return their_cross_entropy(torch, image.flatten(1) @ v["w"], v["wanted"])


def heads(emit: Emit, value: SSAValue) -> SSAValue:
    """The heads of tokens, [batch, head, time, width of a head]."""
    parts = emit(ReshapeOp, value, shape=(2, TIME, HEADS, WIDTH // HEADS))
    return emit(TransposeOp, parts, permutation=(0, 2, 1, 3))


def attention_block(emit: Emit, v: Values) -> SSAValue:
    """Causal attention of several heads and a perceptron, each behind a normalization and beside a residual."""
    x = emit(LayerNormalizationOp, v["x"], v["s0"], v["o0"], axis=2, epsilon=EPSILON)
    query, key, value = (heads(emit, emit(MatMulOp, x, v[name])) for name in ("q", "k", "v"))
    found = emit(AttentionOp, query, key, value, None, scale=(WIDTH / HEADS) ** -0.5, causal=True)
    joined = emit(ReshapeOp, emit(TransposeOp, found, permutation=(0, 2, 1, 3)), shape=(2, TIME, WIDTH))
    x = emit(AddOp, v["x"], emit(MatMulOp, joined, v["o"]))
    inner = emit(LayerNormalizationOp, x, v["s1"], v["o1"], axis=2, epsilon=EPSILON)
    inner = emit(MatMulOp, emit(GeluOp, emit(MatMulOp, inner, v["w0"], v["b0"])), v["w1"])
    return cross_entropy(emit, emit(AddOp, x, inner), v["wanted"])


def their_attention_block(torch: Any, v: Tensors) -> Any:
    functional, shape = torch.nn.functional, (2, TIME, HEADS, WIDTH // HEADS)
    x = functional.layer_norm(v["x"], (WIDTH,), v["s0"], v["o0"], EPSILON)
    query, key, value = ((x @ v[name]).view(shape).transpose(1, 2) for name in ("q", "k", "v"))
    hidden = torch.triu(torch.full((TIME, TIME), -math.inf, dtype=torch.float64), 1)
    weights = torch.softmax(query @ key.transpose(-2, -1) * (WIDTH / HEADS) ** -0.5 + hidden, -1)
    x = v["x"] + (weights @ value).transpose(1, 2).reshape(2, TIME, WIDTH) @ v["o"]
    inner = functional.layer_norm(x, (WIDTH,), v["s1"], v["o1"], EPSILON)
    return their_cross_entropy(torch, x + functional.gelu(inner @ v["w0"] + v["b0"]) @ v["w1"], v["wanted"])


SQUARE, ROW = (WIDTH, WIDTH), (WIDTH,)

NETWORKS: Mapping[str, Network] = {
    "perceptron": Network(
        {"x": (3, 4), "wanted": (3, 3)},
        {"w0": (4, 5), "b0": (5,), "w1": (5, 6), "b1": (6,), "w2": (6, 3)},
        *(perceptron, their_perceptron),
    ),
    "convolutional": Network(
        {"x": (2, 2, 6, 8), "wanted": (2, 3)},
        {"f0": (3, 2, 3, 3), "scale": (3, 1, 1), "offset": (3, 1, 1), "f1": (4, 3, 2, 2), "b1": (4,), "w": (12, 3)},
        *(convolutional, their_convolutional),
    ),
    "attention block": Network(
        {"x": (2, TIME, WIDTH), "wanted": (2, TIME, WIDTH)},
        {
            **dict.fromkeys("qkvo", SQUARE),
            **dict.fromkeys(("s0", "o0", "s1", "o1"), ROW),
            **{"w0": (WIDTH, 9), "b0": (9,), "w1": (9, WIDTH)},
        },
        *(attention_block, their_attention_block),
    ),
}


def drawn(network: Network) -> dict[str, np.ndarray]:
    """Data and parameters, and a direction for each parameter, `along.NAME`."""
    rng = np.random.default_rng(29)
    found = {name: rng.standard_normal(shape) for name, shape in {**network.data, **network.parameters}.items()}
    return found | {f"along.{name}": rng.standard_normal(shape) for name, shape in network.parameters.items()}


def products(network: Network, inputs: Arrays) -> list[dict[str, np.ndarray]]:
    """The loss's slope along the directions, `y`, and its gradients, of the interpreter and of machine code."""

    def slope(emit: Emit, values: Values) -> SSAValue:
        loss = network.ours(emit, values)
        names = list(network.parameters)
        first = emit.all(GradientOp, loss, None, [values[name] for name in names])
        parts = [emit(MulOp, one, values[f"along.{name}"]) for name, one in zip(names, first, strict=True)]
        total = over_all(ReduceSumOp, parts[0], emit)
        for part in parts[1:]:
            total = emit(AddOp, total, over_all(ReduceSumOp, part, emit))
        return total

    module = differentiated(gradient_module(slope, inputs, list(network.parameters)))
    return [run_function(module, inputs), run_machine_code(module.clone(), inputs)]


@pytest.mark.extra
@pytest.mark.parametrize("name", NETWORKS)
def test_product_of_hessian_and_vector_is_that_of_pytorch(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    network = NETWORKS[name]
    inputs = drawn(network)
    tensors = {name: torch.from_numpy(array).requires_grad_() for name, array in inputs.items()}
    parameters = [tensors[name] for name in network.parameters]
    along = [tensors[f"along.{name}"].detach() for name in network.parameters]
    first = torch.autograd.grad(network.theirs(torch, tensors), parameters, create_graph=True)
    second = torch.autograd.grad(first, parameters, along)
    slope = math.fsum((one * other).sum().item() for one, other in zip(first, along, strict=True))
    for results in products(network, inputs):
        assert float(results["y"]) == pytest.approx(slope, rel=1e-12)
        for parameter, product in zip(network.parameters, second, strict=True):
            scale = product.abs().max().item()
            np.testing.assert_allclose(
                results[f"d{parameter}"], product.numpy(), rtol=0, atol=1e-12 * scale, err_msg=parameter
            )
