"""
Functions of JAX, compiled by XLA and by this compiler: CPU time of calls in turns on one core, and of the first call.

    taskset -c 1 python benchmarks/jax_functions.py
    taskset -c 1 python benchmarks/jax_functions.py bert mobilenet:8 --rounds 15

A row has the smallest time of each in milliseconds, the median of the ratios of turns (above 1: XLA takes longer), the
largest deviation relative to the largest number, and the seconds of both first calls, tracing included.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import glow_mlir

Function = Callable[[Any, Any], Any]
Params = dict[str, np.ndarray]


class Network:
    """A function under construction: parameters are drawn at their first use, and read at later ones."""

    def __init__(self) -> None:
        self.params: Params = {}
        self._random = np.random.default_rng(0)

    def __call__(self, given: Any, name: str, *shape: int, scale: float = 0.0, mean: float = 0.0) -> Any:
        """The parameter `name`: normal around `mean`, by default with He's variance."""
        if given is not None:
            return given[name]
        if name not in self.params:
            deviation = scale or (2 / max(1, int(np.prod(shape[:-1])))) ** 0.5
            self.params[name] = (mean + deviation * self._random.standard_normal(shape)).astype(np.float32)
        return self.params[name]


def convolution(
    net: Network, given: Any, name: str, x: Any, size: int, features: int, step: int = 1, groups: int = 1
) -> Any:
    """A convolution and a batch normalization of inference."""
    w = net(given, f"{name}.w", size, size, x.shape[-1] // groups, features)
    y = lax.conv_general_dilated(
        x, w, (step, step), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups
    )
    gamma, beta, average = (
        net(given, f"{name}.{part}", features, scale=0.1, mean=float(part == "g")) for part in "gba"
    )
    variance = abs(net(given, f"{name}.v", features, scale=0.1, mean=1.0))
    return (y - average) * lax.rsqrt(variance + 1e-3) * gamma + beta


def pooled(x: Any, size: int, step: int) -> Any:
    """The largest of each window."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, step, step, 1), "SAME")


def classified(net: Network, given: Any, x: Any) -> Any:
    """Probabilities of 1,000 classes."""
    return jax.nn.softmax(x @ net(given, "classes", x.shape[-1], 1000, scale=0.03))


def resnet50(net: Network) -> Function:
    """ResNet-50 v1 (He et al., 2015)."""

    def run(given: Any, x: Any) -> Any:
        x = pooled(jax.nn.relu(convolution(net, given, "stem", x, 7, 64, 2)), 3, 2)
        for stage, (count, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
            for block in range(count):
                name, step = f"{stage}.{block}", 2 if stage and not block else 1
                rest = x if block else convolution(net, given, f"{name}.rest", x, 1, 4 * width, step)
                y = jax.nn.relu(convolution(net, given, f"{name}.1", x, 1, width))
                y = jax.nn.relu(convolution(net, given, f"{name}.2", y, 3, width, step))
                x = jax.nn.relu(rest + convolution(net, given, f"{name}.3", y, 1, 4 * width) * 0.3)
        return classified(net, given, x.mean((1, 2)))

    return run


def mobilenet(net: Network) -> Function:
    """MobileNet V2 (Sandler et al., 2018)."""
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

    def run(given: Any, x: Any) -> Any:
        x = jax.nn.relu6(convolution(net, given, "stem", x, 3, 32, 2))
        for stage, (factor, width, count, step) in enumerate(stages):
            for block in range(count):
                name, y, inner = f"{stage}.{block}", x, x.shape[-1] * factor
                if factor > 1:
                    y = jax.nn.relu6(convolution(net, given, f"{name}.1", y, 1, inner))
                y = jax.nn.relu6(convolution(net, given, f"{name}.2", y, 3, inner, 1 if block else step, inner))
                y = convolution(net, given, f"{name}.3", y, 1, width)
                x = x + y if block else y
        return classified(net, given, jax.nn.relu6(convolution(net, given, "top", x, 1, 1280)).mean((1, 2)))

    return run


def vgg19(net: Network) -> Function:
    """VGG-19 (Simonyan and Zisserman, 2014)."""

    def run(given: Any, x: Any) -> Any:
        for stage, (count, width) in enumerate(((2, 64), (2, 128), (4, 256), (4, 512), (4, 512))):
            for block in range(count):
                w = net(given, f"{stage}.{block}", 3, 3, x.shape[-1], width)
                x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
                x = jax.nn.relu(x + net(given, f"{stage}.{block}.b", width, scale=0.1))
            x = pooled(x, 2, 2)
        x = x.reshape(x.shape[0], -1)
        for layer in range(2):
            x = jax.nn.relu(x @ net(given, f"full{layer}", x.shape[-1], 4096))
        return classified(net, given, x)

    return run


def encoder(layers: int, width: int, heads: int) -> Callable[[Network], Function]:
    """An encoder of texts as BERT (Devlin et al., 2018)."""

    def normalized(net: Network, given: Any, name: str, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        scale, shift = (net(given, f"{name}.{part}", width, scale=0.1, mean=float(part == "g")) for part in "gb")
        return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift

    def linear(net: Network, given: Any, name: str, x: Any, size: int) -> Any:
        w = net(given, f"{name}.w", x.shape[-1], size, scale=x.shape[-1] ** -0.5)
        return x @ w + net(given, f"{name}.b", size, scale=0.1)

    def built(net: Network) -> Function:
        def run(given: Any, ids: Any) -> Any:
            batch, length = ids.shape
            words = jnp.asarray(net(given, "words", 30522, width, scale=0.02))[ids]
            x = normalized(net, given, "in", words + net(given, "positions", length, width, scale=0.02))
            for layer in range(layers):
                split = (batch, length, heads, width // heads)
                q, k, v = (linear(net, given, f"{layer}.{part}", x, width).reshape(split) for part in "qkv")
                weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * (width // heads) ** -0.5)
                mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape)
                x = normalized(net, given, f"{layer}.1", x + linear(net, given, f"{layer}.o", mixed, width))
                y = jax.nn.gelu(linear(net, given, f"{layer}.up", x, 4 * width), approximate=False)
                x = normalized(net, given, f"{layer}.2", x + linear(net, given, f"{layer}.down", y, width))
            return x

        return run

    return built


NETWORKS: dict[str, Callable[[Network], Function]] = {
    "mobilenet": mobilenet,
    "resnet50": resnet50,
    "vgg19": vgg19,
    "bert": encoder(12, 768, 12),
    "minilm": encoder(6, 384, 12),
}
"""Name → a function of parameters and inputs."""

DEFAULT = ["mobilenet:8", "mobilenet:1", "vgg19:8", "resnet50:8", "bert:1", "minilm:1"]


def compared(name: str, batch: int, rounds: int) -> str:
    """The row of a network."""
    net, random = Network(), np.random.default_rng(1)
    run = NETWORKS[name](net)
    is_text = name in ("bert", "minilm")
    x = (
        random.integers(0, 30522, (batch, 128)).astype(np.int32)
        if is_text
        else random.random((batch, 224, 224, 3), np.float32)
    )
    jax.eval_shape(lambda x: run(None, x), x)
    params, x = jax.device_put((net.params, x))
    begin = time.process_time()
    ours = glow_mlir.from_jax(run, x, params=net.params, threads=1)
    found = ours(x)
    middle = time.process_time()
    theirs = jax.jit(run)
    wanted = jax.block_until_ready(theirs(params, x))
    first = middle - begin, time.process_time() - middle
    error = float(jnp.abs(found - wanted).max() / jnp.abs(wanted).max())
    times = [(_time(lambda: ours(x)), _time(lambda: jax.block_until_ready(theirs(params, x)))) for _ in range(rounds)]
    own, other = (1e3 * min(column) for column in zip(*times, strict=True))
    ratio = statistics.median(later / former for former, later in times)
    return (
        f"{name} b{batch}: {own:.2f} ms, XLA {other:.2f} ms, ratio {ratio:.2f}, error {error:.1e}, "
        f"first call {first[0]:.1f} s, XLA {first[1]:.1f} s"
    )


def _time(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def main() -> None:
    """Print a row for each network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=DEFAULT, metavar="NAME:BATCH")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    for item in arguments.networks:
        name, _, batch = item.partition(":")
        print(compared(name, int(batch or 1), arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
