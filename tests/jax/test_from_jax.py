"""Functions of JAX, and models of Flax and Keras, compiled by `from_jax` and `from_keras`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import glow_mlir
from glow_mlir.errors import GlowError, InputError, ModelError

pytestmark = pytest.mark.extra

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("KERAS_BACKEND", "jax")

RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def jax() -> Any:
    """The package."""
    return pytest.importorskip("jax")


def floats(*shape: int) -> np.ndarray:
    """Random numbers."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def check(jax: Any, found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    """Compare two trees of arrays, relative to the largest number."""
    ours, theirs = jax.tree.flatten(found), jax.tree.flatten(expected)
    assert ours[1] == theirs[1]
    for one, other in zip(ours[0], theirs[0], strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        numbers = np.asarray(other, np.float64)
        error = np.abs(np.asarray(one, np.float64) - numbers).max(initial=0)
        assert error <= tolerance * (np.abs(numbers).max(initial=0) + 1e-6)


def predict(params: Any, x: Any, *, scale: float = 2.0) -> Any:
    """A function with trees of arguments and results."""
    import jax.numpy as jnp

    return {"y": jnp.tanh(x @ params["w"]) * scale, "parts": (x.sum(-1), x.astype(jnp.bfloat16))}


def test_parameters_are_constants_or_operands(jax: Any) -> None:
    params, x = {"w": jax.numpy.asarray(floats(7, 5))}, floats(3, 7)
    expected = jax.jit(predict)(params, x)
    constant = glow_mlir.from_jax(predict, x, params=params, threads=1)
    check(jax, constant(x), expected)
    assert [item.name for item in constant.session.get_inputs()] == ["x"]
    operand = glow_mlir.from_jax(predict, params, x, threads=1)
    check(jax, operand(params, x), expected)
    assert [item.name for item in operand.session.get_inputs()] == ["params['w']", "x"]
    assert [item.name for item in operand.session.get_outputs()] == [
        "result['parts'][0]",
        "result['parts'][1]",
        "result['y']",
    ]
    assert isinstance(operand(params, x)["y"], jax.Array)


def test_static_arguments_and_keywords(jax: Any) -> None:
    x = floats(3, 7)
    compiled = glow_mlir.from_jax(
        predict, {"w": floats(7, 2)}, keywords={"x": x, "scale": 3.0}, static_argnames=("scale",), threads=1
    )
    weights = {"w": floats(7, 2)}
    check(jax, compiled(weights, x=x), predict(jax.tree.map(jax.numpy.asarray, weights), x, scale=3.0))


def test_inputs_have_the_names_of_arguments(jax: Any) -> None:
    def weighted(a: Any, *others: Any, k: Any = 1.0, **rest: Any) -> Any:
        return a + sum(item["v"] for item in others) * k + rest["z"]

    given, keywords = (1.0, {"v": 2.0}, {"v": 3.0}), {"z": 4.0, "k": 2.0}
    compiled = glow_mlir.from_jax(weighted, *given, keywords=keywords, threads=1)
    names = ["a", "others[0]['v']", "others[1]['v']", "k", "z"]
    assert [item.name for item in compiled.session.get_inputs()] == names
    assert float(compiled(*given, **keywords)) == weighted(*given, **keywords)


def test_a_gradient_is_a_program(jax: Any) -> None:
    step = jax.value_and_grad(lambda w, x: (jax.numpy.tanh(x @ w) ** 2).sum())
    w, x = floats(8, 4), floats(3, 8)
    check(jax, glow_mlir.from_jax(step, w, x, threads=1)(w, x), jax.jit(step)(w, x))


def test_a_scan_is_a_loop(jax: Any) -> None:
    def cell(state: Any, row: Any) -> Any:
        state = jax.numpy.tanh(state @ w + row)
        return state, state * 2

    w, rows = floats(4, 4), floats(6, 2, 4)
    run = lambda rows: jax.lax.scan(cell, jax.numpy.zeros((2, 4)), rows)  # noqa: E731
    check(jax, glow_mlir.from_jax(run, rows, threads=1)(rows), jax.jit(run)(rows))


@pytest.mark.parametrize("dtype", "float32 bfloat16 float16 int8 int32 uint8 uint32 bool".split())
def test_large_constants_of_each_type(jax: Any, dtype: str) -> None:
    large = jax.numpy.asarray((RANDOM.standard_normal((12, 13)) * 3).astype(dtype))
    compiled = glow_mlir.from_jax(lambda x: (x.astype(dtype) == large, large, large[:1, :2]), floats(12, 13), threads=1)
    x = jax.numpy.asarray(floats(12, 13))
    for one, other in zip(compiled(x), (x.astype(dtype) == large, large, large[:1, :2]), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("count", [1, 3, 200])
def test_complex_arguments_constants_and_results(jax: Any, count: int) -> None:
    x, held = (floats(count) + 1j * floats(count)).astype(np.complex64), floats(count) - 2j * floats(count)

    def turned(weights: Any, x: Any, y: Any) -> Any:
        return {"z": x * held.astype(np.complex64) + (2 - 1j) * y, "size": abs(x), "w": weights * x}

    for params, given in ((held, (x, floats(count))), (None, (held, x, floats(count)))):
        compiled = glow_mlir.from_jax(turned, *given, params=params, threads=1)
        expected = jax.jit(turned)(*(() if params is None else (params,)), *given)
        found = compiled(*given)
        for name, wanted in expected.items():
            assert found[name].dtype == wanted.dtype
            np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-5)


def test_complex_results_keep_infinities_and_signs_of_zero(jax: Any) -> None:
    z = np.array([complex(1, np.inf), complex(-0.0, -0.0), complex(np.inf, 2)], np.complex64)
    found = np.asarray(glow_mlir.from_jax(lambda z: z[::-1], z, threads=1)(z))
    assert found.tobytes() == z[::-1].tobytes()


def test_other_values_of_static_arguments_are_refused(jax: Any) -> None:
    x = floats(3)
    compiled = glow_mlir.from_jax(lambda x, n: x * n, x, keywords={"n": 3}, static_argnames=("n",), threads=1)
    check(jax, compiled(x), x * 3)
    with pytest.raises(InputError, match="argument 'n' is 5, and the program is compiled for 3"):
        compiled(x, n=5)


@pytest.mark.parametrize(
    ("example", "given", "reason"),
    [
        (3, 3.7, r"float32\[\], not int32\[\]"),
        (3, 1 << 40, "1099511627776, which int32 does not have"),
        (3.0, 1 + 2j, "is complex64"),
        (3.0, "a", "is a 'str', not an array"),
        (np.uint8(3), -1, "-1, which uint8 does not have"),
    ],
)
def test_numbers_that_the_element_type_does_not_have_are_refused(
    jax: Any, example: Any, given: Any, reason: str
) -> None:
    compiled = glow_mlir.from_jax(lambda x: x + x, example, threads=1)
    assert float(compiled(True)) == float(compiled(example)) - 4 == 2.0
    with pytest.raises(InputError, match=reason):
        compiled(given)
    with pytest.raises(InputError, match="is traced"):
        jax.jit(compiled)(example)


def test_what_does_not_fit_is_refused_in_one_line(jax: Any) -> None:
    x = floats(3, 7)
    compiled = glow_mlir.from_jax(lambda x: x + 1, x, threads=1)
    with pytest.raises(InputError, match=r"argument 'x' is float32\[2, 7\], not float32\[3, 7\]"):
        compiled(x[:2])
    with pytest.raises(InputError, match="the arguments are"):
        compiled(x, x)
    with pytest.raises(ModelError, match="JAX cannot trace the function"):
        glow_mlir.from_jax(lambda x: float(x.sum()), x)
    with pytest.raises(InputError, match="of the parameters has a shape and no values"):
        glow_mlir.from_jax(lambda w, x: w * x, x, params=jax.ShapeDtypeStruct((7,), np.float32))
    with pytest.raises(GlowError, match=r"svd|gesdd"):
        glow_mlir.from_jax(lambda x: jax.numpy.linalg.svd(x, compute_uv=False), x)


def test_keys_of_random_numbers(jax: Any) -> None:
    draw = lambda key: jax.random.uniform(key, (5,))  # noqa: E731
    key = jax.random.key(3)
    check(jax, glow_mlir.from_jax(draw, key, threads=1)(key), draw(key), 0)
    parts = glow_mlir.from_jax(jax.random.split, key, threads=1)(key)
    assert parts.dtype == key.dtype
    check(jax, jax.random.key_data(parts), jax.random.key_data(jax.random.split(key)), 0)


def test_flax(jax: Any) -> None:
    linen = pytest.importorskip("flax.linen")

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            x = linen.relu(linen.GroupNorm(num_groups=2)(linen.Conv(8, (3, 3))(x)))
            return linen.Dense(5)(linen.avg_pool(x, (2, 2), (2, 2)).mean((1, 2)))

    model, x = Network(), floats(2, 8, 8, 3)
    variables = model.init(jax.random.key(0), x)
    check(jax, glow_mlir.from_jax(model.apply, x, params=variables, threads=1)(x), model.apply(variables, x), 1e-5)


def test_nnx(jax: Any) -> None:
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Sequential(nnx.Linear(6, 8, rngs=nnx.Rngs(0)), nnx.relu, nnx.Linear(8, 3, rngs=nnx.Rngs(1)))
    graph, state = nnx.split(model)
    x = floats(4, 6)
    compiled = glow_mlir.from_jax(lambda state, x: nnx.merge(graph, state)(x), x, params=state, threads=1)
    check(jax, compiled(x), model(x), 1e-5)


def test_keras(jax: Any) -> None:
    keras = pytest.importorskip("keras")
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((16, 16, 3)),
            layers.Conv2D(8, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.DepthwiseConv2D(3),
            layers.MaxPooling2D(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )
    x = floats(2, 16, 16, 3)
    check(jax, glow_mlir.from_keras(model, x, threads=1)(x), model(x), 1e-5)
    (given,) = glow_mlir.from_keras(model, threads=1).session.get_inputs()
    assert given.shape == [1, 16, 16, 3]


def test_complex_numbers_and_keys_are_arguments_and_results(jax: Any) -> None:
    x = (floats(3) + 1j * floats(3)).astype(np.complex64)
    few, many = (np.arange(size) + 1j for size in (3, 200))

    def function(x: Any, key: Any) -> Any:
        constants = jax.numpy.asarray(few, np.complex64), jax.numpy.asarray(many, np.complex64)
        return x * constants[0], constants[1] * x[0], jax.random.split(key)

    key = jax.random.key(3)
    ours = glow_mlir.from_jax(function, x, key, threads=1)(x, key)
    theirs = jax.jit(function)(x, key)
    for one, other in zip(ours[:2], theirs[:2], strict=True):
        assert one.dtype == other.dtype
        assert abs(one - other).max() <= 1e-5 * abs(other).max()
    assert (ours[2] == theirs[2]).all()


@pytest.mark.parametrize("kind", [list, dict])
def test_a_model_of_keras_with_two_inputs_is_called_with_what_it_takes(jax: Any, kind: type) -> None:
    keras = pytest.importorskip("keras")
    layers = {name: keras.Input((size,), name=name) for name, size in (("b", 3), ("a", 4))}
    arrays = {"b": floats(1, 3), "a": floats(1, 4)}
    inputs, given = (item if kind is dict else [*item.values()] for item in (layers, arrays))
    model = keras.Model(inputs, keras.layers.Dense(2)(keras.layers.Concatenate()([*layers.values()])))
    for compiled in (glow_mlir.from_keras(model, threads=1), glow_mlir.from_keras(model, given, threads=1)):
        check(jax, compiled(given), model(given), 1e-5)


def test_a_model_of_keras_that_takes_two_arguments(jax: Any) -> None:
    keras = pytest.importorskip("keras")

    class Shifted(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, x: Any, shift: Any) -> Any:
            return self.dense(x) + shift

    model, given = Shifted(), (floats(3, 4), floats(3, 2))
    check(jax, glow_mlir.from_keras(model, *given, threads=1)(*given), model(*given), 1e-5)
