"""Models of Flax: training with statistics, recurrent layers, and decoders with their caches."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import glow_mlir

pytestmark = pytest.mark.extra

os.environ.setdefault("JAX_PLATFORMS", "cpu")

RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def jax() -> Any:
    """The package."""
    pytest.importorskip("flax")
    return pytest.importorskip("jax")


def floats(*shape: int) -> np.ndarray:
    """Random numbers."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def check(jax: Any, found: Any, expected: Any) -> None:
    """Compare two trees of arrays, relative to the largest number of each."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        scale = np.abs(np.asarray(other, np.float64)).max(initial=0) + 1e-6
        assert np.abs(np.asarray(one, np.float64) - np.asarray(other, np.float64)).max(initial=0) <= 1e-5 * scale


def test_statistics_of_batches_are_results(jax: Any) -> None:
    from flax import linen

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x: Any, train: bool = True) -> Any:
            x = linen.BatchNorm(use_running_average=not train)(linen.Conv(8, (3, 3), use_bias=False)(x))
            return linen.WeightNorm(linen.Dense(4))(linen.Dropout(0.5, deterministic=not train)(x.mean((1, 2))))

    model, x = Network(), floats(3, 8, 8, 3)
    variables = model.init(jax.random.key(0), x, train=False)

    def step(variables: Any, x: Any, key: Any, train: bool) -> Any:
        return model.apply(variables, x, train=train, mutable=["batch_stats"], rngs={"dropout": key})

    key = jax.random.key(1)
    for train in (True, False):
        compiled = glow_mlir.from_jax(step, variables, x, key, train, static_argnames="train", threads=1)
        check(jax, compiled(variables, x, key, train), jax.jit(step, static_argnums=3)(variables, x, key, train))


def test_a_decoder_with_its_cache(jax: Any) -> None:
    from flax import linen

    class Decoder(linen.Module):
        @linen.compact
        def __call__(self, tokens: Any) -> Any:
            x = linen.Embed(20, 16)(tokens)
            x = x + linen.MultiHeadDotProductAttention(4, qkv_features=16, decode=True)(linen.LayerNorm()(x))
            return linen.Dense(20)(x)

    model, tokens = Decoder(), np.array([[3], [4]], np.int32)
    variables = model.init(jax.random.key(0), np.zeros((2, 6), np.int32))

    def step(params: Any, cache: Any, tokens: Any) -> Any:
        found, state = model.apply({"params": params, "cache": cache}, tokens, mutable=["cache"])
        return found, state["cache"]

    params, cache = variables["params"], variables["cache"]
    compiled, other = glow_mlir.from_jax(step, cache, tokens, params=params, threads=1), cache
    for _ in range(6):
        (found, cache), (expected, other) = compiled(cache, tokens), jax.jit(step)(params, other, tokens)
        check(jax, (found, cache), (expected, other))
        tokens = np.asarray(expected.argmax(-1)).astype(np.int32)


def test_recurrent_layers_with_lengths(jax: Any) -> None:
    from flax import linen, nnx

    x, lengths = floats(2, 7, 6), np.array([7, 4])
    layer = linen.Bidirectional(linen.RNN(linen.GRUCell(4)), linen.RNN(linen.OptimizedLSTMCell(4)))
    variables = layer.init(jax.random.key(0), x)
    run = lambda variables, x, lengths: layer.apply(variables, x, seq_lengths=lengths)  # noqa: E731
    check(jax, glow_mlir.from_jax(run, x, lengths, params=variables, threads=1)(x, lengths), run(variables, x, lengths))
    graph, state = nnx.split(nnx.RNN(nnx.LSTMCell(6, 5, rngs=nnx.Rngs(0))))
    merged = lambda state, x: nnx.merge(graph, state)(x)  # noqa: E731
    check(jax, glow_mlir.from_jax(merged, x, params=state, threads=1)(x), merged(state, x))
