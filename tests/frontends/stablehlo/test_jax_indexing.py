"""Indexing, sorting, folds and pools of JAX, against JAX itself: shapes, types, and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from glow_mlir import InferenceSession
from glow_mlir.frontends.stablehlo.model import StablehloModel
from glow_mlir.interpreter.machine import run_function

pytestmark = pytest.mark.extra
jax: Any = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 4, 6)).astype(np.float32)
ROWS, COLUMNS, ROW = np.array([0, 3, -1], np.int32), np.array([1, -2, 9], np.int32), np.int32(2)
ODD = np.array([1, np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan, 2, 1, 0.0, -1], np.float32)
IMAGE = np.round(RNG.standard_normal((2, 9, 8, 3)) * 4).astype(np.float32)
ELEMENTS = ["bfloat16", "int8", "uint32", "bool"]
OTHERS = ("float16", "uint8", "int16", "uint16", "int32", "float32")
ELEMENTS += [pytest.param(element, marks=pytest.mark.long) for element in OTHERS]

Function = Callable[..., Any]


def check(function: Function, *operands: Any, tolerance: float = 2e-5, is_compiled: bool = False) -> None:
    """Raise `AssertionError` unless a function gives what JAX says: in the interpreter, or as machine code."""
    arrays = [np.asarray(item) for item in operands]
    expected = [np.asarray(item) for item in jax.tree.leaves(jax.jit(function)(*arrays))]
    exported = jax.export.export(jax.jit(function))(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays))
    model = StablehloModel(exported.mlir_module().encode())
    kept = [arrays[number] for number in exported.module_kept_var_idx]
    signature = model.signature({})
    feeds = {item.name: array for item, array in zip(signature.inputs, kept, strict=True)}
    if is_compiled:
        results = InferenceSession(model, threads=1).run(None, feeds)
    else:
        outputs = run_function(model.module({}), feeds)
        results = [outputs[item.name] for item in signature.outputs]
    for found, wanted in zip(results, expected, strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        one, other = (np.asarray(item, np.float64) for item in (found, wanted))
        scale = np.abs(other[np.isfinite(other)]).max(initial=1e-6)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale)


INDEXED: Mapping[str, Function] = {
    "rows": lambda x, i, j, s: x[i],
    "columns": lambda x, i, j, s: x[:, i],
    "last": lambda x, i, j, s: x[..., i],
    "pairs": lambda x, i, j, s: x[i, j],
    "apart": lambda x, i, j, s: x[i, :, j],
    "elements": lambda x, i, j, s: x[i, j, i],
    "number": lambda x, i, j, s: x[s],
    "numbers": lambda x, i, j, s: x[s, :, s],
    "outer": lambda x, i, j, s: x[i[:, None], :, j],
    "slices": lambda x, i, j, s: x[::-2, i],
    "steps": lambda x, i, j, s: x[i, 1:4:2],
    "runs": lambda x, i, j, s: x[i[:, None] + jnp.arange(2)],
}


@pytest.mark.parametrize("form", INDEXED)
def test_reads_at_indices(form: str) -> None:
    check(INDEXED[form], X, ROWS, COLUMNS, ROW)


@pytest.mark.parametrize("operation", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("form", ["rows", "columns", "apart", "number", "outer", "runs"])
def test_updates_at_indices(form: str, operation: str) -> None:
    class Target:
        def __init__(self, x: Any) -> None:
            self.x = x

        def __getitem__(self, index: Any) -> Function:
            return getattr(self.x.at[index], operation)

    shape = np.asarray(INDEXED[form](X, ROWS, np.clip(COLUMNS, -4, 3), ROW)).shape
    updates = RNG.standard_normal(shape).astype(np.float32)
    check(lambda x, i, j, s, u: INDEXED[form](Target(x), i, j, s)(u), X, ROWS, COLUMNS, ROW, updates)


@pytest.mark.parametrize("mode", ["clip", "fill", "wrap"])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_modes_of_take(mode: str, axis: int | None) -> None:
    check(lambda x, i: jnp.take(x, i, axis=axis, mode=mode), X, np.array([[0, -1, 4], [7, -9, 2]], np.int32))
    if mode != "wrap" and axis is not None:
        places = RNG.integers(-8, 8, (5, 4, 6)).astype(np.int32)
        check(lambda x, i: jnp.take_along_axis(x, i, axis=axis, mode=mode), X, places)


@pytest.mark.parametrize("element", ELEMENTS)
def test_sorts_of_all_element_types(element: str) -> None:
    x = (X * 3).astype(jnp.dtype(element))
    check(lambda x: (jnp.sort(x, axis=1), jnp.argsort(x, axis=0), jnp.argsort(x, descending=True)), x)
    check(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.max(x, 1), jnp.min(x, (0, 2))), x)
    if element != "bool":
        check(lambda x: lax.top_k(x, 3), x)
        check(lambda x: (lax.cummax(x, axis=1), lax.cummin(x, axis=1, reverse=True)), x)
        check(lambda x, i: x.at[i].add(x[:3]), x, ROWS)


ORDERS: Mapping[str, Function] = {
    "sort": jnp.sort,
    "argsort": jnp.argsort,
    "top_k": lambda x: lax.top_k(x, 11),
    "argmax": jnp.argmax,
    "argmin": jnp.argmin,
    "cummax": lax.cummax,
    "cumsum": lax.cumsum,
    "pairs": lambda x: lax.sort((x, jnp.arange(11)), num_keys=1),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders_of_nan_infinities_and_zeros(name: str) -> None:
    check(ORDERS[name], ODD)
    found = jax.tree.leaves(jax.jit(ORDERS[name])(ODD))[0]
    if name in ("sort", "top_k") and found.dtype == np.float32:
        check(lambda x: jnp.signbit(jax.tree.leaves(ORDERS[name](x))[0]), ODD)


KEYS = [RNG.integers(0, 3, (4, 50)).astype(element) for element in (np.int32, np.float32, np.uint8)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_sorts_with_several_keys(count: int) -> None:
    check(lambda *keys: lax.sort(keys, num_keys=count, dimension=1), *KEYS, np.arange(200).reshape(4, 50).astype("i4"))
    check(lambda *keys: lax.sort(keys, num_keys=count, dimension=0), *KEYS)


COUNTS: Mapping[str, Function] = {
    "unique": lambda x: jnp.unique(jnp.round(x), size=9, return_inverse=True, return_counts=True),
    "nonzero": lambda x: jnp.nonzero(x > 0.1, size=60, fill_value=-1),
    "searchsorted": lambda x: jnp.searchsorted(jnp.sort(x.ravel()), x[0, 0]),
    "histogram": lambda x: jnp.histogram(x, bins=10),
    "bincount": lambda x: jnp.bincount(jnp.round(abs(x)).astype(int).ravel(), length=5),
    "percentile": lambda x: jnp.percentile(x, jnp.array([10.0, 50.0, 90.0]), axis=1),
    "median": lambda x: (jnp.median(x), jnp.median(x, axis=1)),
    "cumulative": lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cumlogsumexp(x, axis=2, reverse=True)),
    "segments": lambda x: [getattr(jax.ops, f"segment_{w}")(x, jnp.array([0, 2, 2, 9, -1]), 7) for w in ("sum", "max")],
    "associative scan": lambda x: lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (x, x), axis=1),
    "norms": lambda x: lax.reduce(x, np.float32(0), lambda a, b: jnp.sqrt(a * a + b * b), (0, 2)),
    "apply": lambda x: x.at[jnp.array([0, 3, 3])].apply(jnp.sin),
    "complex": lambda x: jnp.abs(jnp.cumsum(lax.complex(x, 2 * x), 1).at[jnp.array([1, 1])].multiply(1j)),
    "nearest": lambda x: jax.image.resize(x, (5, 9, 4), "nearest"),
    "cubic": lambda x: jax.image.resize(x, (5, 9, 4), "cubic"),
    "loop": lambda x: lax.fori_loop(0, 4, lambda i, x: x.at[i, i].add(x[i + 1, 0]), x),
    "gradient of take": jax.grad(lambda x: (jnp.take(x, ROWS, axis=1) ** 2).sum()),
    "gradient of sort": jax.grad(lambda x: (jnp.sort(x, axis=1) * jnp.arange(6.0)).sum()),
    "gradient of cumprod": jax.grad(lambda x: lax.cumprod(x, axis=1).sum()),
}


@pytest.mark.long
@pytest.mark.parametrize("name", COUNTS)
def test_functions_of_jax_numpy(name: str) -> None:
    check(COUNTS[name], X, is_compiled=True)


def pooled(x: Any, kind: str, window: tuple[int, int], strides: tuple[int, int], padding: str) -> Any:
    start, combine = {"max": (-np.inf, lax.max), "min": (np.inf, lax.min), "sum": (0.0, lax.add)}[kind]
    return lax.reduce_window(x, np.array(start, x.dtype), combine, (1, *window, 1), (1, *strides, 1), padding)


@pytest.mark.parametrize("kind", ["max", "min", "sum"])
@pytest.mark.parametrize(("window", "strides", "padding"), [((2, 2), (2, 2), "VALID"), ((3, 2), (2, 1), "SAME")])
def test_pools_and_their_gradients(kind: str, window: tuple[int, int], strides: tuple[int, int], padding: str) -> None:
    def pool(x: Any) -> Any:
        return pooled(x, kind, window, strides, padding)

    check(pool, IMAGE)
    check(jax.grad(lambda x: (jnp.sin(pool(x)) * jnp.arange(1.0, 4)).sum()), IMAGE)
    check(pool, IMAGE.astype(jnp.bfloat16), tolerance=1e-2)
