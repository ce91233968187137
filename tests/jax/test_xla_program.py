"""Compiled functions that XLA calls from their second call on: results, errors and memory are those of the first."""

from __future__ import annotations

import gc
import os
import threading
from typing import Any

import numpy as np
import pytest

import glow_mlir
from glow_mlir.errors import InputError

pytestmark = pytest.mark.extra

os.environ.setdefault("JAX_PLATFORMS", "cpu")


@pytest.fixture(scope="module")
def jax() -> Any:
    """The package."""
    return pytest.importorskip("jax")


def step(tree: Any, x: Any) -> Any:
    """New weights by gradients, and the loss."""
    import jax

    def loss(tree: Any) -> Any:
        return jax.numpy.mean((jax.numpy.tanh(x @ tree["w"]) + tree["b"]) ** 2)

    value, gradients = jax.value_and_grad(loss)(tree)
    return jax.tree.map(lambda one, other: one - 0.1 * other, tree, gradients), value


def arguments_of_a_step() -> Any:
    """A tree of weights, and samples."""
    draw = np.random.default_rng(0)
    return {"w": draw.standard_normal((5, 7), np.float32), "b": np.zeros(7, np.float32)}, np.ones((3, 5), np.float32)


def without_session(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make sure that calls do not go through the session."""

    def refused(*_: Any) -> None:
        raise AssertionError("the session computes")

    monkeypatch.setattr(function.session, "run", refused)


def test_later_calls_give_the_results_of_the_first_without_the_session(
    jax: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = arguments_of_a_step()
    function = glow_mlir.from_jax(step, *arguments)
    first = function(*arguments)
    without_session(function, monkeypatch)
    for given in (arguments, jax.device_put(arguments)):
        again = function(*given)
        assert jax.tree.structure(again) == jax.tree.structure(first)
        for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
            assert isinstance(other, jax.Array)
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32"])
def test_all_element_types_of_arrays_are_those_of_xla(jax: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = jax.numpy.arange(6).reshape(2, 3).astype(dtype)
    function = glow_mlir.from_jax(lambda x: (x.T, x == x), x)
    function(x)
    without_session(function, monkeypatch)
    turned, equal = function(x)
    np.testing.assert_array_equal(turned, x.T)
    assert turned.dtype == x.dtype
    assert bool(equal.all())


def test_later_calls_compute_with_denormal_numbers_as_the_first(jax: Any) -> None:
    x = np.array([1.2e-38, 1e-39, 1e-45, 2], np.float32)
    function = glow_mlir.from_jax(lambda x: x * 0.75, x)
    for given in (x, x, jax.device_put(x)):
        np.testing.assert_array_equal(function(given), x * np.float32(0.75))
    np.testing.assert_array_equal(jax.jit(lambda x: x * 0.75)(x), [0, 0, 0, 1.5])  # XLA has its own word back.


def test_arguments_that_do_not_fit_are_refused_as_in_the_first_call(jax: Any) -> None:
    x = np.ones((3, 5), np.float32)
    function = glow_mlir.from_jax(lambda x: x * 2, x)
    function(x)
    function(x)
    for wrong in (np.ones((3, 4), np.float32), x.astype(np.int32), "text", [x]):
        with pytest.raises(InputError):
            function(wrong)
    with pytest.raises(InputError, match="traced"):
        jax.jit(function)(x)
    gone = jax.device_put(x)
    gone.delete()
    with pytest.raises(InputError, match="deleted"):
        function(gone)
    np.testing.assert_array_equal(function(x), x * 2)


def test_calls_go_through_the_session_where_memory_for_several_at_once_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(*_: Any) -> None:
        raise MemoryError

    x = np.ones((3, 5), np.float32)
    function = glow_mlir.from_jax(lambda x: x * 2, x)
    function(x)
    monkeypatch.setattr("glow_mlir.runtime.xla_calls.aligned", missing)
    for _ in range(2):
        np.testing.assert_array_equal(function(x), x * 2)


def test_arguments_have_any_names() -> None:
    x = np.ones(3, np.float32)
    function = glow_mlir.from_jax(lambda x, self: x - self, x, keywords={"self": x})
    for _ in range(3):
        np.testing.assert_array_equal(function(x, self=x), np.zeros(3, np.float32))


def test_numbers_of_python_are_converted_in_each_call() -> None:
    function = glow_mlir.from_jax(lambda x, rate: x * rate, np.ones(3, np.float32), np.float32(2))
    for rate in (2, 0.5, 3):
        np.testing.assert_array_equal(function(np.ones(3, np.float32), rate), np.full(3, rate, np.float32))


@pytest.mark.parametrize("offset", [0, 1])
def test_large_arrays_of_numpy_are_taken_wherever_they_begin(offset: int) -> None:
    memory = np.arange((1 << 18) + 32, dtype=np.float32)
    start = -memory.ctypes.data % 64 // 4 + offset
    x = memory[start : start + (1 << 18)]
    function = glow_mlir.from_jax(lambda x: x + 1, x)
    for _ in range(3):
        np.testing.assert_array_equal(function(x), x + 1)


def test_a_donated_array_gives_its_memory_to_the_result_in_later_calls(
    jax: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def appended(cache: Any, row: Any, at: Any) -> Any:
        return jax.lax.dynamic_update_slice(cache, row, (at, 0))

    cache, row = jax.numpy.zeros((512, 64)), jax.numpy.ones((1, 64))
    function = glow_mlir.from_jax(appended, cache, row, np.int32(3), donate_argnames="cache")
    cache = function(cache, row, np.int32(0))
    without_session(function, monkeypatch)
    for at in range(1, 4):
        given, address = cache, cache.unsafe_buffer_pointer()
        cache = function(given, row, np.int32(at))
        assert given.is_deleted()
        assert cache.unsafe_buffer_pointer() == address
    assert float(cache.sum()) == 4 * 64


def test_results_are_right_where_the_function_is_gone_before_they_are_computed() -> None:
    x = np.random.default_rng(0).standard_normal((256, 256), np.float32)
    for _ in range(3):
        function = glow_mlir.from_jax(lambda x: x @ x, x)
        function(x)
        results = [function(x) for _ in range(4)]
        del function
        gc.collect()
        for result in results:
            np.testing.assert_allclose(result, x @ x, rtol=1e-4, atol=1e-3)


def test_threads_call_one_function_at_once(jax: Any) -> None:
    x = np.random.default_rng(0).standard_normal((64, 64), np.float32)
    function = glow_mlir.from_jax(lambda x, y: jax.numpy.tanh(x @ x) + y, x, np.float32(0))
    expected = np.asarray(function(x, np.float32(0)))
    wrong: list[int] = []

    def calls(number: int) -> None:
        for _ in range(50):
            if not np.array_equal(function(x, np.float32(number)), expected + np.float32(number)):
                wrong.append(number)

    threads = [threading.Thread(target=calls, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
