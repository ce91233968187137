"""Arguments that calls give up: results take their memory."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import glow_mlir
from glow_mlir.errors import InputError

pytestmark = pytest.mark.extra

os.environ.setdefault("JAX_PLATFORMS", "cpu")

RANDOM = np.random.default_rng(0)
HEADS, LENGTH, WIDTH = 4, 256, 16


@pytest.fixture(scope="module")
def jax() -> Any:
    """The package."""
    return pytest.importorskip("jax")


def step(cache: Any, x: Any, position: Any) -> Any:
    """One token's attention over a cache of keys and values."""
    import jax
    import jax.numpy as jnp

    keys = jax.lax.dynamic_update_slice(cache["keys"], x[:, :, None], (0, 0, position, 0))
    values = cache["values"].at[:, :, position].set(x * 2)
    scores = jnp.where(jnp.arange(LENGTH) <= position, jnp.einsum("bhe,bhte->bht", x, keys) / 4, -1e9)
    return jnp.einsum("bht,bhte->bhe", jax.nn.softmax(scores), values), {"keys": keys, "values": values}


def new_cache(jax: Any) -> Any:
    """A cache in memory of JAX."""
    numbers = RANDOM.standard_normal((1, HEADS, LENGTH, WIDTH)).astype(np.float32)
    return {name: jax.numpy.asarray(numbers) + 0 for name in ("keys", "values")}


def addresses(cache: Any) -> list[int]:
    """Where a cache is."""
    return [cache[name].unsafe_buffer_pointer() for name in ("keys", "values")]


@pytest.mark.parametrize("is_jitted", [False, True])
def test_a_cache_stays_where_it_is(jax: Any, is_jitted: bool) -> None:
    cache, x = new_cache(jax), RANDOM.standard_normal((1, HEADS, WIDTH)).astype(np.float32)
    donating = jax.jit(step, donate_argnames="cache")
    if is_jitted:
        compiled = glow_mlir.from_jax(donating, cache, x, 0, threads=1)
    else:
        compiled = glow_mlir.from_jax(step, cache, x, 0, donate_argnames="cache", threads=1)
    other = jax.tree.map(lambda array: array + 0, cache)
    begin = addresses(cache)
    for position in range(3):
        given = cache
        (found, cache), (expected, other) = compiled(given, x, position), jax.jit(step)(other, x, position)
        assert addresses(cache) == begin
        assert given["keys"].is_deleted()
        for one, wanted in zip(jax.tree.leaves((found, cache)), jax.tree.leaves((expected, other)), strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(wanted), rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match=r"argument 'cache\['keys'\]' was deleted, or donated to another call"):
        compiled(given, x, 0)
    view = np.asarray(cache["keys"])
    before = view.copy()
    compiled(cache, x, 9)  # Views of what is given up keep what they show.
    np.testing.assert_array_equal(view, before)


def test_small_arrays_and_arrays_of_numpy_are_copied(jax: Any) -> None:
    compiled = glow_mlir.from_jax(lambda a, b: (a + b, a), np.ones(5), np.ones(5), donate_argnames=["a"], threads=1)
    given = np.ones(5, np.float32)
    found = compiled(given, given)
    assert (np.asarray(found[0]) == 2).all()
    assert (given == 1).all()
    donated = jax.numpy.ones(5)
    assert (np.asarray(compiled(donated, given)[1]) == 1).all()
    assert donated.is_deleted()


def test_an_array_that_is_given_twice(jax: Any) -> None:
    cache = new_cache(jax)
    same = {name: cache["keys"] for name in cache}
    compiled = glow_mlir.from_jax(
        lambda cache: {name: array.at[0, 0, 0, 0].add(1) for name, array in cache.items()},
        cache,
        donate_argnames="cache",
        threads=1,
    )
    first = float(cache["keys"][0, 0, 0, 0])
    for array in compiled(same).values():
        assert abs(float(array[0, 0, 0, 0]) - first - 1) < 1e-6
