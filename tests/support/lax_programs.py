"""Cases of control flow, linear algebra, random numbers and special functions of `jax.lax`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src import test_util as jtu
from lax_cases import COMPLEX, FLOATS, INTEGERS, Given, case

Cases = Mapping[str, tuple[Callable[..., Any], tuple[int, ...]]]
"""Name → a function of one array, and its shape."""

LOOPS: Cases = {
    "fori": (lambda x: lax.fori_loop(0, 5, lambda i, c: c + x * jnp.asarray(i, x.dtype), x), (3,)),
    "fori, dynamic trips": (
        lambda x: lax.fori_loop(0, jnp.abs(x).sum().real.astype(np.int32), lambda _, c: c + x, x),
        (3,),
    ),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 7, lambda c: (c[0] + 2, c[1] + x), (0, x)), (3,)),
    "while on data": (lambda x: lax.while_loop(lambda c: jnp.abs(c).max() < 50, lambda c: c * 2 + 1, x), (3,)),
    "nested while": (lambda x: nested(x), (3,)),
    "cond": (lambda x: lax.cond(x.sum().real > 0, lambda v: v * 2, lambda v: v - 1, x), (3,)),
    "cond of trees": (
        lambda x: lax.cond(x[0].real > 0, lambda v: {"a": v[0], "b": v[1:]}, lambda v: {"a": v[1], "b": v[:2]}, x),
        (3,),
    ),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c * v), x[0], x), (6, 2)),
    "scan, reversed": (lambda x: lax.scan(lambda c, v: (c + v, c * v), x[0], x, reverse=True), (6, 2)),
    "scan, unrolled": (lambda x: lax.scan(lambda c, v: (c + v, (c, v)), x[0], x, unroll=4), (6, 2)),
    "scan without inputs": (lambda x: lax.scan(lambda c, _: (c + x, c.sum()), x, None, length=4), (3,)),
    "scan in scan": (
        lambda x: lax.scan(lambda c, v: lax.scan(lambda d, w: (d + w, d - w), c, v), x[0, 0], x),
        (3, 4),
    ),
    "scan of cond": (
        lambda x: lax.scan(lambda c, v: (lax.cond(v.real > 0, lambda a: a + v, lambda a: a - v, c), c), x[0], x),
        (6,),
    ),
    "empty scan": (lambda x: lax.scan(lambda c, v: (c + v, c), x.sum(0), x), (0, 2)),
    "map": (lambda x: lax.map(lambda v: v * v + 1, x), (5, 2)),
    "map in batches": (lambda x: lax.map(lambda v: v * v + 1, x, batch_size=2), (5, 2)),
    "associative scan": (
        lambda x: (lax.associative_scan(jnp.add, x), lax.associative_scan(jnp.multiply, x, reverse=True)),
        (7, 2),
    ),
    "vmap of while": (
        jax.vmap(lambda x: lax.while_loop(lambda c: jnp.abs(c) < 20, lambda c: c * 2 + 1, x)),
        (4,),
    ),
    "vmap of cond": (jax.vmap(lambda x: lax.cond(x.real > 0, lambda v: v * 3, lambda v: v - 1, x)), (4,)),
    "vmap of fori": (
        jax.vmap(lambda x: lax.fori_loop(0, jnp.abs(x).astype(np.int32), lambda _, c: c + 2, x)),
        (4,),
    ),
}
"""Loops and branches."""

DERIVATIVES: Cases = {
    "gradient of scan": (
        jax.grad(lambda x: lax.scan(lambda c, v: (jnp.sin(c) * v, c), x[0], x)[0].sum()),
        (5, 3),
    ),
    "gradient of cond": (jax.grad(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x).sum()), (3,)),
    "gradient of fori": (jax.grad(lambda x: lax.fori_loop(0, 4, lambda _, c: c * jnp.cos(x), x).sum()), (3,)),
    "jvp of while": (
        lambda x: jax.jvp(
            lambda v: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * v), (0, v))[1], (x,), (x + 1,)
        ),
        (3,),
    ),
    "root": (
        lambda x: lax.custom_root(
            lambda y: y**3 - abs(x) - 1, jnp.ones_like(x), newton, lambda g, y: y / g(jnp.ones_like(y))
        ),
        (),
    ),
    "remat": (jax.grad(lambda x: jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)))(x).sum()), (3,)),
}
"""Derivatives of loops and branches."""


def loops() -> Iterator[Given]:
    """Control flow, and derivatives of it."""
    for dtype in (np.float32, np.float64, np.int32, jnp.bfloat16, np.complex64):
        for name, (function, shape) in LOOPS.items():
            yield case("control_flow", name, dtype, function, shape)
        for index in (-1, 0, 1, 5):
            yield case("control_flow", f"switch {index}", dtype, functools.partial(switched, index), (3,))
    for dtype in (np.float32, np.float64):
        for name, (function, shape) in DERIVATIVES.items():
            yield case("control_flow", name, dtype, function, shape)


def nested(x: Any) -> Any:
    """A loop in a loop."""

    def outer(carry: Any) -> Any:
        at, value = carry
        return at + 1, lax.while_loop(lambda c: c[0] < at, lambda c: (c[0] + 1, c[1] + x), (0, value))[1]

    return lax.while_loop(lambda c: c[0] < 3, outer, (0, x))


def switched(index: int, x: Any) -> Any:
    """One of three functions, by an index that may be out of range."""
    which = jnp.asarray(index, np.int32) + (x * 0).real.sum().astype(np.int32)
    return lax.switch(which, [lambda v: v, lambda v: v * 2, lambda v: v - 3], x)


def newton(f: Any, y: Any) -> Any:
    """A root by Newton's method."""
    return lax.fori_loop(0, 30, lambda _, v: v - f(v) / jax.grad(f)(v), y)


def matrices() -> Iterator[Given]:
    """Linear algebra."""

    def positive(a: Any) -> Any:
        return a @ jnp.conj(jnp.swapaxes(a, -1, -2)) + 5 * jnp.eye(a.shape[-1], dtype=a.dtype)

    for dtype, batch in itertools.product([np.float32, np.float64, *COMPLEX], [(), (2,)]):
        square = (*batch, 4, 4)
        yield case("linalg", "cholesky", dtype, lambda a: lax.linalg.cholesky(positive(a)), square)
        yield case("linalg", "lu", dtype, lambda a: lax.linalg.lu(a), square, make=jtu.rand_default)
        yield case("linalg", "solve", dtype, lambda a, b: jnp.linalg.solve(positive(a), b), square, (*batch, 4, 2))
        yield case("linalg", "det", dtype, lambda a: (jnp.linalg.det(a), jnp.linalg.slogdet(positive(a))), square)
        yield case("linalg", "inverse", dtype, lambda a: jnp.linalg.inv(positive(a)), square)
        for left, lower, turn, unit in itertools.product((True, False), repeat=4):
            solve = functools.partial(
                lax.linalg.triangular_solve,
                left_side=left,
                lower=lower,
                transpose_a=turn,
                unit_diagonal=unit,
                conjugate_a=turn,
            )
            shape = (*batch, 4, 3) if left else (*batch, 3, 4)
            yield case(
                "linalg",
                f"triangular_solve {left} {lower} {turn} {unit}",
                dtype,
                lambda a, b, solve=solve: solve(a + 4 * jnp.eye(4, dtype=a.dtype), b),
                square,
                shape,
            )
        yield case("linalg", "norms", dtype, lambda a: (jnp.linalg.norm(a), jnp.linalg.matrix_power(a, 3)), square)
    for dtype in (np.float32, np.float64):
        yield case(
            "linalg", "tridiagonal", dtype, lambda a, b: lax.linalg.tridiagonal_solve(a, a + 5, a, b), (4,), (4, 2)
        )
    for dtype, length in itertools.product((np.float32, np.float64), (7, 8)):
        for kind in (jnp.fft.fft, jnp.fft.ifft, jnp.fft.rfft, jnp.fft.fft2, jnp.fft.rfft2, jnp.fft.hfft):
            yield case("fft", f"{kind.__name__}", dtype, kind, (3, length))
        yield case("fft", "irfft", dtype, lambda x, length=length: jnp.fft.irfft(x + 1j * x[::-1], length), (3, length))
    for dtype in COMPLEX:
        for kind in (jnp.fft.fft, jnp.fft.ifft, jnp.fft.fftn, jnp.fft.ifftn):
            yield case("fft", f"{kind.__name__}", dtype, kind, (2, 3, 8))


def keyed(group: str, text: str, dtype: Any, draw: Any) -> Given:
    """A case that draws with a key."""
    return (
        group,
        f"{group} {text} {np.dtype(dtype).name}",
        np.dtype(dtype).name,
        draw,
        lambda _: [np.array([3, 9], np.uint32)],
    )


def randoms() -> Iterator[Given]:
    """Random numbers: of each generator, distribution and type."""

    for algorithm in ("RNG_THREE_FRY", "RNG_PHILOX", "RNG_DEFAULT"):
        for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
            size = 2 if "FRY" in algorithm else 4
            draw = functools.partial(
                lax.rng_bit_generator, shape=(3, 5), dtype=dtype, algorithm=getattr(lax.RandomAlgorithm, algorithm)
            )
            yield case(
                "rng_bit_generator", f"{algorithm} {np.dtype(dtype).name}", np.uint32, draw, (size,), make=jtu.rand_int
            )
    for dtype in FLOATS:
        for name in ("uniform", "normal", "exponential", "laplace", "gumbel", "cauchy", "logistic", "truncated_normal"):
            arguments = (-1, 1) if name == "truncated_normal" else ()
            draw = functools.partial(
                lambda key, draw, arguments, dtype: draw(key, *arguments, shape=(3, 5), dtype=dtype),
                draw=getattr(jax.random, name),
                arguments=arguments,
                dtype=dtype,
            )
            yield keyed("random", name, dtype, draw)
        yield keyed(
            "random",
            "gamma",
            dtype,
            functools.partial(lambda key, dtype: jax.random.gamma(key, 2.5, (4,), dtype), dtype=dtype),
        )
        yield keyed(
            "random",
            "beta",
            dtype,
            functools.partial(lambda key, dtype: jax.random.beta(key, 2.5, 1.5, (4,), dtype), dtype=dtype),
        )
    for dtype in INTEGERS:
        yield keyed(
            "random",
            "bits",
            dtype,
            functools.partial(lambda key, dtype: jax.random.randint(key, (9,), 2, 99, dtype), dtype=dtype),
        )
    yield keyed(
        "random",
        "permutation",
        np.int32,
        lambda key: (jax.random.permutation(key, 20), jax.random.choice(key, 9, (4,), replace=False)),
    )
    yield keyed("random", "bernoulli", np.float32, lambda key: jax.random.bernoulli(key, 0.3, (20,)))
    yield keyed(
        "random", "categorical", np.float32, lambda key: jax.random.categorical(key, jnp.arange(5.0), shape=(9,))
    )
    yield keyed("random", "poisson", np.int32, lambda key: jax.random.poisson(key, 3.0, (9,)))
    yield keyed("random", "split", np.uint32, lambda key: (jax.random.split(key, 3), jax.random.fold_in(key, 7)))


def special() -> Iterator[Given]:
    """Special functions."""
    for dtype in (np.float32, np.float64):
        for name, count in {"zeta": 2, "polygamma": 2, "igamma_grad_a": 2, "random_gamma_grad": 2}.items():

            def drawn(*values: Any, name: str = name) -> Any:
                first = jnp.floor(values[0]) + 1 if name == "polygamma" else values[0] + 1
                return getattr(lax, name)(first, *values[1:])

            yield case("special", name, dtype, drawn, *[(4, 5)] * count, make=jtu.rand_positive)
        yield case(
            "special",
            "logsumexp",
            dtype,
            lambda x: (jax.nn.logsumexp(x, 1), jax.nn.log_softmax(x), jax.nn.gelu(x), jax.nn.softplus(x)),
            (3, 5),
        )
        yield case(
            "special",
            "gradient of lgamma",
            dtype,
            jax.grad(lambda x: lax.lgamma(x).sum()),
            (4,),
            make=jtu.rand_positive,
        )
        yield case("special", "gradient of erf_inv", dtype, jax.grad(lambda x: lax.erf_inv(x * 0.1).sum()), (4,))


def integers() -> Iterator[Given]:
    """Operators of integers and bits, whole powers and roundings."""
    for dtype, op in itertools.product(INTEGERS, [lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic]):
        yield case("shift", op.__name__, dtype, op, (40,), (40,), make=jtu.rand_int)
        yield case(
            "shift",
            f"{op.__name__} by little",
            dtype,
            lambda x, y, op=op: op(x, y % 7),
            (40,),
            (40,),
            make=jtu.rand_int,
        )
    for dtype, op in itertools.product(INTEGERS, [lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.div, lax.rem]):
        yield case("integers", op.__name__, dtype, op, (40,), (40,), make=jtu.rand_fullrange)
    for dtype in INTEGERS:
        yield case(
            "integers",
            "one operand",
            dtype,
            lambda x: (lax.bitwise_not(x), lax.clz(x), lax.population_count(x), abs(x), -x, lax.sign(x)),
            (40,),
            make=jtu.rand_fullrange,
        )
        for power in (0, 1, 2, 3, 7):
            yield case(
                "integers",
                f"to the {power}",
                dtype,
                lambda x, power=power: lax.integer_pow(x, power),
                (10,),
                make=jtu.rand_int,
            )
        yield case("integers", "power", dtype, lambda x, y: lax.pow(x, y), (10,), (10,))
    for dtype, op in itertools.product([*FLOATS, *COMPLEX], [-3, -1, 0, 1, 2, 5, 10]):
        yield case(
            "integer_pow", f"to the {op}", dtype, lambda x, op=op: lax.integer_pow(x, op), (10,), make=jtu.rand_nonzero
        )


def roundings() -> Iterator[Given]:
    """Roundings, and awkward numbers."""
    for dtype, (exponent, mantissa) in itertools.product(FLOATS, [(5, 10), (8, 7), (4, 3), (8, 23), (2, 1), (11, 52)]):
        yield case(
            "reduce_precision",
            f"{exponent} {mantissa}",
            dtype,
            lambda x, e=exponent, m=mantissa: lax.reduce_precision(x, e, m),
            (40,),
            make=jtu.rand_default,
        )
    for dtype in FLOATS:
        yield case(
            "rounding",
            "",
            dtype,
            lambda x: (
                lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
                lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
                lax.floor(x),
                lax.ceil(x),
            ),
            (40,),
            make=jtu.rand_default,
        )
        yield case("special values", "", dtype, awkward, (8,))


def awkward(x: Any) -> Any:
    """Elementwise operators on NaN, infinity, zeros of both signs and the smallest numbers."""
    tiny = float(jnp.finfo(x.dtype).tiny)
    y = jnp.array([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 1.0], x.dtype) + x * 0
    a, b = y[:, None], y[None, :]
    ones = [
        f(y)
        for f in (
            lax.sign,
            lax.floor,
            lax.sqrt,
            lax.rsqrt,
            lax.exp,
            lax.log,
            lax.tanh,
            lax.is_finite,
            lax.cbrt,
            lax.erf,
        )
    ]
    return [
        a < b,
        a == b,
        a != b,
        a >= b,
        lax.max(a, b),
        lax.min(a, b),
        lax.atan2(a, b),
        lax.pow(a, b),
        lax.rem(a, b),
        *ones,
    ]


def programs() -> Iterator[Given]:
    """All cases of this module."""
    for family in (loops, matrices, randoms, special, integers, roundings):
        yield from family()
