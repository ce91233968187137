"""What JAX calls by name, and products of groups, equal JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glow_mlir
from glow_mlir.frontends.stablehlo.model import StablehloModel

jax = pytest.importorskip("jax")
lax: Any = jax.lax

pytestmark = pytest.mark.extra

RANDOM = np.random.default_rng(7)


def drawn(*shape: int) -> np.ndarray:
    """Random floats."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def numbers(dot: Any, ragged: int, groups: list[int]) -> Any:
    """The dimension numbers of a product of groups."""
    return lax.RaggedDotDimensionNumbers(
        dot_dimension_numbers=dot, lhs_ragged_dimensions=[ragged], rhs_group_dimensions=groups
    )


SIZES = np.array([2, 0, 3, 1], np.int32)
"""The sizes of groups of 8 rows, two of which are in none."""

BY_INDEX = np.array([[1, 2, 3, 1], [4, 0, 4, 0], [0, 0, 1, 2]], np.int32)

RAGGED: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, Any]] = {
    "rows": (drawn(8, 5), drawn(4, 5, 3), SIZES, numbers((((1,), (1,)), ((), ())), 0, [0])),
    "rows, factors last": (drawn(5, 8), drawn(5, 3, 4), SIZES, numbers((((0,), (0,)), ((), ())), 1, [2])),
    "rows of a batch": (drawn(3, 8, 5), drawn(3, 4, 5, 2), SIZES, numbers((((2,), (2,)), ((0,), (0,))), 1, [1])),
    "rows by index": (drawn(8, 3, 5), drawn(4, 5, 3, 2), BY_INDEX, numbers((((2,), (1,)), ((1,), (2,))), 0, [0])),
    "rows behind others": (drawn(3, 8, 5), drawn(4, 5, 2), BY_INDEX, numbers((((2,), (1,)), ((), ())), 1, [0])),
    "sums": (drawn(8, 5), drawn(8, 3), SIZES, numbers((((0,), (0,)), ((), ())), 0, [])),
    "sums of a batch": (drawn(5, 8, 3), drawn(3, 8, 2), BY_INDEX, numbers((((1,), (1,)), ((2,), (0,))), 1, [])),
    "sums over two axes": (drawn(3, 5, 8), drawn(8, 3, 2), BY_INDEX, numbers((((0, 2), (1, 0)), ((), ())), 2, [])),
    "batch": (drawn(8, 5, 2), drawn(8, 2, 3), SIZES, numbers((((2,), (1,)), ((0,), (0,))), 0, [])),
}


def for_other_devices(function: Callable[..., Any], *examples: np.ndarray) -> glow_mlir.InferenceSession:
    """The session of a program for devices for which JAX does not write out products of groups."""
    text = jax.jit(function).trace(*examples).lower(lowering_platforms=("tpu",)).as_text()
    assert "ragged_dot" in text
    return glow_mlir.InferenceSession(StablehloModel(text.encode()))


def results_for_other_devices(function: Callable[..., Any], *examples: np.ndarray) -> np.ndarray:
    """What that session gives."""
    session = for_other_devices(function, *examples)
    names = [item.name for item in session.get_inputs()]
    return session.run(None, dict(zip(names, examples, strict=True)))[0]


@pytest.mark.parametrize("form", RAGGED)
def test_products_of_groups(form: str) -> None:
    left, right, sizes, given = RAGGED[form]

    def function(left: Any, right: Any, sizes: Any) -> Any:
        return lax.ragged_dot_general(left, right, sizes, given)

    expected = jax.jit(function)(left, right, sizes)
    found = results_for_other_devices(function, left, right, sizes)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    written_out = glow_mlir.from_jax(function, left, right, sizes)(left, right, sizes)
    np.testing.assert_allclose(written_out, expected, rtol=1e-5, atol=1e-5)


def test_what_is_not_in_a_group_does_not_reach_its_product() -> None:
    left, right = drawn(3, 2), drawn(2, 2, 2)
    left[0], right[1, 0] = np.inf, np.nan
    found = results_for_other_devices(lax.ragged_dot, left, right, np.array([2, 1], np.int32))
    np.testing.assert_allclose(found[1], left[1] @ right[0], rtol=1e-5)
    assert np.isnan(found[2]).all()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("select", [lax.approx_max_k, lax.approx_min_k], ids=["largest", "smallest"])
def test_approximate_selections_are_the_exact_ones(select: Callable[..., Any], axis: int) -> None:
    value = RANDOM.permutation(60).reshape(6, 10).astype(np.float32)

    def function(value: Any) -> Any:
        return select(value, 3, reduction_dimension=axis)

    values, indices = glow_mlir.from_jax(function, value)(value)
    order = np.argsort(-value if select is lax.approx_max_k else value, axis=axis).take(range(3), axis)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(value, order, axis))


def test_candidates_of_an_approximate_selection_have_its_elements() -> None:
    value = RANDOM.standard_normal((2, 4096)).astype(np.float32)

    def function(value: Any) -> Any:
        return lax.approx_max_k(value, 3, recall_target=0.5, aggregate_to_topk=False)

    values, indices = glow_mlir.from_jax(function, value)(value)
    assert values.shape == jax.eval_shape(function, value)[0].shape
    np.testing.assert_array_equal(np.sort(values)[:, :-4:-1], np.sort(value)[:, :-4:-1])
    np.testing.assert_array_equal(values, np.take_along_axis(value, np.asarray(indices), 1))


def exported(function: Callable[..., Any], shape: str) -> StablehloModel:
    """A program for arrays with free dimensions."""
    sizes = jax.export.symbolic_shape(shape)
    argument = jax.ShapeDtypeStruct(sizes, np.float32)
    return StablehloModel(jax.export.export(jax.jit(function))(argument).mlir_module_serialized)


def largest_of_windows(x: Any) -> Any:
    """The largest elements of windows as wide as the array is high."""
    return lax.reduce_window(x, -np.inf, lax.max, (1, x.shape[0]), (1, 1), "SAME")


def sums_of_windows(x: Any) -> Any:
    """Sums of windows as high as the array."""
    return lax.reduce_window(x, 0.0, lax.add, (x.shape[0], 2), (1, 2), ((1, 2), (0, 0)))


def largest(x: Any) -> Any:
    """As many elements of each row as there are rows."""
    return lax.top_k(x, x.shape[0])


def largest_by_approximation(x: Any) -> Any:
    """Those that may be left out by chance."""
    return lax.approx_max_k(x, x.shape[0])


CALLS = {
    "dynamic_reduce_window of maxima": largest_of_windows,
    "dynamic_reduce_window of sums": sums_of_windows,
    "dynamic_top_k": largest,
    "dynamic_approx_top_k": largest_by_approximation,
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_whose_sizes_are_free_dimensions(name: str) -> None:
    function = CALLS[name]
    model = exported(function, "b, b + 5")
    assert f"@stablehlo.{name.split()[0]}" in str(model.program)
    session = glow_mlir.InferenceSession(model)
    for size in (3, 4):
        value = RANDOM.permutation(size * (size + 5)).reshape(size, -1).astype(np.float32)
        expected = jax.tree.leaves(jax.jit(function)(value))
        (given,) = session.get_inputs()
        for found, wanted in zip(session.run(None, {given.name: value}), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
