"""How `from_jax` takes arguments: static ones, ones by name, jitted and exported functions, and what does not fit."""

from __future__ import annotations

import functools
import os
from typing import Any, NamedTuple

import numpy as np
import pytest

import glow_mlir
from glow_mlir.errors import GlowError, InputError, OptionError

pytestmark = pytest.mark.extra

os.environ.setdefault("JAX_PLATFORMS", "cpu")

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def jax() -> Any:
    """The package."""
    return pytest.importorskip("jax")


def check(jax: Any, found: Any, expected: Any) -> None:
    """Compare trees of arrays of JAX, with their types."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), map(jax.numpy.asarray, jax.tree.leaves(expected)), strict=True):
        assert isinstance(one, jax.Array)
        assert (one.shape, one.dtype, one.weak_type) == (other.shape, other.dtype, other.weak_type)
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5, atol=1e-6)


def names_of(compiled: Any) -> list[str]:
    """The names of the inputs."""
    return [item.name for item in compiled.session.get_inputs()]


def repeated(x: Any, count: int, *, is_doubled: bool = False) -> Any:
    """A function whose other arguments are static."""
    import jax.numpy as jnp

    return jnp.tile(x, (count, 1)) * (2 if is_doubled else 1)


def test_static_arguments_by_position_and_by_name(jax: Any) -> None:
    static = ("count", "is_doubled")
    compiled = glow_mlir.from_jax(repeated, X, 2, keywords={"is_doubled": True}, static_argnames=static, threads=1)
    for found in (compiled(X, 2, is_doubled=True), compiled(x=X, count=2), compiled(X)):
        check(jax, found, repeated(X, 2, is_doubled=True))
    with pytest.raises(InputError, match="argument 'count' is 3, and the program is compiled for 2"):
        compiled(X, 3)
    with pytest.raises(OptionError, match=r"has no argument 'n' \(hint: it has x, count, is_doubled\)"):
        glow_mlir.from_jax(repeated, X, 2, static_argnames="n")
    check(jax, glow_mlir.from_jax(repeated, X, 2, static_argnames="count", threads=1)(X), repeated(X, 2))


def test_jitted_functions_keep_their_own_static_arguments(jax: Any) -> None:
    for jitted in (jax.jit(repeated, static_argnames="count"), jax.jit(repeated, static_argnums=1)):
        check(jax, glow_mlir.from_jax(jitted, X, 2, threads=1)(X), repeated(X, 2))
    both = glow_mlir.from_jax(
        jax.jit(repeated, static_argnums=1),
        X,
        2,
        keywords={"is_doubled": True},
        static_argnames="is_doubled",
        threads=1,
    )
    check(jax, both(X, 2), repeated(X, 2, is_doubled=True))
    unused = glow_mlir.from_jax(jax.jit(lambda x, y: x + 1), X, X, threads=1)
    assert names_of(unused) == ["x", "y"]
    check(jax, unused(X, X), X + 1)


class Model:
    """A class with methods."""

    def __init__(self) -> None:
        self.weight = np.ones((4, 2), np.float32)

    def __call__(self, x: Any) -> Any:
        """Apply it."""
        return x @ self.weight

    def apply(self, x: Any) -> Any:
        """Apply it."""
        return self(x)


def test_methods_and_partial_functions(jax: Any) -> None:
    model = Model()
    jitted = functools.partial(jax.jit, static_argnums=0)(lambda self, x: self(x)).__get__(model)
    for function in (model, model.apply, jitted):
        check(jax, glow_mlir.from_jax(function, X, threads=1)(X), model(X))
    partial = glow_mlir.from_jax(functools.partial(lambda a, b, *, c: a - b + c, X, c=1.0), X * 2, threads=1)
    assert names_of(partial) == ["b"]
    check(jax, partial(X * 2), 1 - X)


def test_exported_functions(jax: Any) -> None:
    weights = {"w": np.ones((4, 2), np.float32)}
    exported = jax.export.export(jax.jit(lambda p, x: {"y": x @ p["w"]}))(weights, X)
    check(jax, glow_mlir.from_jax(exported, X, params=weights, threads=1)(X), {"y": X @ weights["w"]})
    (size,) = jax.export.symbolic_shape("n")
    example = jax.ShapeDtypeStruct((size, 4), np.float32)
    check(jax, glow_mlir.from_jax(jax.export.export(jax.jit(lambda x: x + 1))(example), X, threads=1)(X), X + 1)


class Pair(NamedTuple):
    """A tree."""

    a: Any
    b: Any


def test_trees_and_names(jax: Any) -> None:
    tree = {"a": Pair(X, None), "b": [X, 2]}
    compiled = glow_mlir.from_jax(
        lambda t, *rest, **named: (Pair(t["a"].a * t["b"][1], None), named["z"], rest), tree, X, X,
        keywords={"z": 1.5}, threads=1,
    )  # fmt: skip
    assert names_of(compiled) == ["t['a'].a", "t['b'][0]", "t['b'][1]", "rest[0]", "rest[1]", "z"]
    check(jax, compiled(tree, X, X, z=1.5), (Pair(X * 2, None), 1.5, (X, X)))


def test_weak_types_wide_types_and_results_without_arrays(jax: Any) -> None:
    function = lambda a, b: (a * 2, b + 1, 3, None, X, a)  # noqa: E731
    check(jax, glow_mlir.from_jax(function, 1.5, 2, threads=1)(1.5, 2), jax.jit(function)(1.5, 2))
    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else lambda _: jax.experimental.enable_x64()
    wide = np.arange(4.0)
    with enable(True):
        compiled = glow_mlir.from_jax(lambda x: (x * 2, x.astype(int)), wide, threads=1)
    assert [item.dtype for item in compiled(wide)] == [np.float64, np.int64]


def test_complex_numbers_and_keys(jax: Any) -> None:
    z = (X + 2j * X).astype(np.complex64)
    large = np.arange(200).astype(np.complex64) * (1 - 1j)
    function = lambda p, z: (z * p * 2, abs(z), jax.numpy.asarray(large)[3:] + 1j)  # noqa: E731
    check(jax, glow_mlir.from_jax(function, z, params=z, threads=1)(z), jax.jit(function)(z, z))
    key = jax.random.key(1, impl="rbg")
    found = glow_mlir.from_jax(lambda key: key, key, threads=1)(key)
    assert found.dtype == key.dtype
    assert (jax.random.key_data(found) == jax.random.key_data(key)).all()


def test_misuse_is_one_line(jax: Any) -> None:
    compiled = glow_mlir.from_jax(lambda x, k: x * k, X, 2, threads=1)
    gone = jax.numpy.asarray(X)
    gone.delete()
    struct = jax.ShapeDtypeStruct((3, 4), np.float32)
    for call, message in (
        (lambda: compiled(X), r"the arguments are \(\(\*,\), \{\}\), not"),
        (lambda: compiled(X, "a"), "argument 'k' is a 'str', not an array"),
        (lambda: compiled(X, 2.5), r"argument 'k' is float32\[\], not int32\[\]"),
        (lambda: compiled(X, 2, z=3), "unexpected keyword argument 'z'"),
        (lambda: compiled(gone, 2), "argument 'x' was deleted"),
        (lambda: jax.jit(compiled)(X, 2), "argument 'x' is traced by JAX"),
        (lambda: glow_mlir.from_jax(3, X), "a 'int' is no function"),
        (
            lambda: glow_mlir.from_jax(lambda x: x, "a"),
            r"'x' is a 'str', not an array \(hint: static_argnames",
        ),
        (lambda: glow_mlir.from_jax(lambda x: x, np.array(["a"])), "argument 'x' is of <U1"),
        (
            lambda: glow_mlir.from_jax(lambda p, x: x, X, params=struct),
            "of the parameters has a shape and no values",
        ),
        (lambda: glow_mlir.from_jax({}.__getitem__, X), "JAX cannot trace the function"),
    ):
        with pytest.raises(GlowError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
