"""PyTorch's operators that compute gradients: adjoints of linear ones, and central differences of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from traced_operators import computed

BACKENDS = pytest.mark.parametrize("backend", ["interpreter", "cpu"])
RANDOM = np.random.default_rng(0)
STEP = 1e-6


def drawn(*sizes: int) -> np.ndarray:
    """Numbers of f64."""
    return RANDOM.standard_normal(sizes)


IMAGE = (2, 3, 4, 5)
LARGER = [8, 10]
OTHER = [6, 7]

Linear = tuple[str, Sequence[Any], tuple[int, ...], tuple[int, ...]]
"""Operator, its arguments behind the first, and the sizes of what it takes and gives."""

LINEAR: Mapping[str, Linear] = {
    "nearest, twice": ("upsample_nearest2d", (LARGER, None, None), IMAGE, (2, 3, 8, 10)),
    "nearest, by other factors": ("upsample_nearest2d", (OTHER, None, None), IMAGE, (2, 3, 6, 7)),
    "nearest by places between": ("_upsample_nearest_exact2d", (OTHER, None, None), IMAGE, (2, 3, 6, 7)),
    "linear": ("upsample_bilinear2d", (OTHER, False, None, None), IMAGE, (2, 3, 6, 7)),
    "linear, corners aligned": ("upsample_bilinear2d", (OTHER, True, None, None), IMAGE, (2, 3, 6, 7)),
    "cubic": ("upsample_bicubic2d", (OTHER, False, None, None), IMAGE, (2, 3, 6, 7)),
    "antialiased": ("_upsample_bilinear2d_aa", ([2, 3], False, None, None), IMAGE, (2, 3, 2, 3)),
    "means of windows": ("avg_pool2d", ([3, 3], [2, 2], [1, 1], True, False, None), IMAGE, (2, 3, 3, 3)),
    "sums of windows by a divisor": ("avg_pool2d", ([3, 3], [2, 2], [1, 1], True, True, 2), IMAGE, (2, 3, 3, 3)),
}


@BACKENDS
@pytest.mark.parametrize("name", LINEAR)
def test_adjoint(name: str, backend: str) -> None:
    """The products of results with a gradient are those of operands with what it becomes."""
    operator, arguments, given, made = LINEAR[name]
    x, gradient = drawn(*given), drawn(*made)
    (y,) = computed(f"aten.{operator}.default", (x, *arguments), [gradient], backend=backend)
    behind = (x,) if "pool" in operator else (arguments[0], list(given))
    rest = arguments if "pool" in operator else arguments[1:]
    backward = f"aten.{operator}_backward.default"
    (by_input,) = computed(backward, (gradient, *behind, *rest), [x], backend=backend)
    assert float((y * gradient).sum()) == pytest.approx(float((x * by_input).sum()), rel=1e-5)


@BACKENDS
def test_columns_of_windows(backend: str) -> None:
    """Windows as columns, and the sums of these, are adjoint."""
    window = ([2, 3], [2, 1], [1, 0], [1, 2])
    x, gradient = drawn(2, 3, 5, 7), drawn(2, 18, 15)
    (y,) = computed("aten.im2col.default", (x, *window), [gradient], backend=backend)
    assert y[0, :, 0].tolist() == np.stack([np.zeros((3, 3)), x[0, :, 1, :3]], 1).reshape(-1).tolist()
    (back,) = computed("aten.col2im.default", (gradient, [5, 7], *window), [x], backend=backend)
    assert float((y * gradient).sum()) == pytest.approx(float((x * back).sum()))


def differences(function: Callable[..., np.ndarray], gradient: np.ndarray, values: Sequence[np.ndarray]) -> list[Any]:
    """The derivatives of the products of what a function gives with a gradient, by each value."""
    found: list[Any] = []
    for number, value in enumerate(values):
        slopes = np.zeros(value.shape)
        for place in np.ndindex(value.shape):
            ends: list[float] = []
            for sign in (1, -1):
                moved = value.copy()
                moved[place] += sign * STEP
                others = [*values[:number], moved, *values[number + 1 :]]
                ends.append(float((function(*others) * gradient).sum()))
            slopes[place] = (ends[0] - ends[1]) / (2 * STEP)
        found.append(slopes)
    return found


def standardized(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An array less its means, over its deviations; and these."""
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    inverse = 1 / np.sqrt(variance + epsilon)
    return (x - mean) * inverse, mean, inverse


EPSILON = 0.25
"""So large that another one would show."""


@BACKENDS
@pytest.mark.parametrize("kind", ["rows", "batch", "groups"])
def test_normalization(kind: str, backend: str) -> None:
    """The gradients by input, scale and offset, from saved statistics."""
    x, gradient = drawn(2, 4, 3), drawn(2, 4, 3)
    axes = {"rows": (2,), "batch": (0, 2), "groups": (2, 3)}[kind]
    parameters = (3,) if kind == "rows" else (4, 1)
    scale, offset = drawn(*parameters), drawn(*parameters)
    grouped = (2, 2, 2, 3) if kind == "groups" else x.shape

    def forward(x: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> np.ndarray:
        return standardized(x.reshape(grouped), axes, EPSILON)[0].reshape(x.shape) * scale + offset

    expected = differences(forward, gradient, (x, scale, offset))
    _, mean, inverse = standardized(x.reshape(grouped), axes, EPSILON)
    flat = scale.reshape(-1)
    by_kind: Mapping[str, tuple[str, Sequence[Any]]] = {
        "rows": ("layer", (x, [3], mean, inverse, flat, offset.reshape(-1))),
        "batch": ("batch", (x, flat, None, None, mean.reshape(-1), inverse.reshape(-1), True, 0.0)),
        "groups": ("group", (x, mean.reshape(2, -1), inverse.reshape(2, -1), flat, 2, 4, 3, 2)),
    }
    operator, arguments = by_kind[kind]
    results = [x, flat, flat]
    target = f"aten.native_{operator}_norm_backward.default"
    found = computed(target, (gradient, *arguments, [True, True, True]), results, backend=backend)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other.reshape(one.shape), rtol=1e-5, atol=1e-6)


def attended(query: np.ndarray, key: np.ndarray, value: np.ndarray, causal: bool) -> np.ndarray:
    """Attention of heads of queries that share heads of keys, by the formula."""
    shared = query.shape[1] // key.shape[1]
    key, value = key.repeat(shared, axis=1), value.repeat(shared, axis=1)
    scores: np.ndarray = query @ key.transpose(0, 1, 3, 2) / math.sqrt(query.shape[3])
    if causal:
        scores[..., np.arange(key.shape[2]) > np.arange(query.shape[2])[:, None]] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


@BACKENDS
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [(2, 2), (4, 2)])
def test_attention(heads: tuple[int, int], causal: bool, backend: str) -> None:
    """Of heads that share keys too."""
    query, key, value = drawn(1, heads[0], 3, 4), drawn(1, heads[1], 5, 4), drawn(1, heads[1], 5, 4)
    expected = attended(query, key, value, causal)
    sums = np.zeros(expected.shape[:3])
    target = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    found = computed(target, (query, key, value, 0.0, causal), [expected, sums], backend=backend)
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)


@BACKENDS
def test_queries_that_see_no_key(backend: str) -> None:
    """Their results are 0."""
    query, key = drawn(1, 2, 3, 4), drawn(1, 2, 5, 4)
    mask = np.zeros((3, 5))
    mask[1] = -np.inf
    expected = attended(query, key, key, causal=False)
    expected[:, :, 1] = 0
    target = "aten.scaled_dot_product_attention.default"
    (found,) = computed(target, (query, key, key, mask), [expected], backend=backend)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@BACKENDS
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses_of_classes(reduction: int, backend: str) -> None:
    """Targets that are ignored have no gradient; a mean is one by the weights of the others."""
    x, weight, target = drawn(4, 3), np.array([1.0, 2.0, 3.0]), np.array([2, 0, -100, 1])
    kept = np.array([3.0, 1.0, 0.0, 2.0])
    gradient = drawn(4) if reduction == 0 else np.array(1.5)
    expected = np.zeros((4, 3))
    expected[[0, 1, 3], [2, 0, 1]] = (-kept * gradient / (kept.sum() if reduction == 1 else 1))[[0, 1, 3]]
    arguments = (gradient, x, target, weight, reduction, -100, np.array(kept.sum()))
    (found,) = computed("aten.nll_loss_backward.default", arguments, [expected], backend=backend)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
