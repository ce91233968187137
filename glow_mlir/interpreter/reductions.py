"""Meaning of reductions: sums and products in f64 (integers exactly, wrapping), rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.interpreter.linear import wide
from glow_mlir.registry import semantics

Reducer = Callable[..., np.ndarray]


def total(x: np.ndarray, **where: object) -> np.ndarray:
    """The sum, in f64 for floats; integers keep their type and wrap."""
    return np.sum(wide(x), dtype=wide(x).dtype, **where)


def _mean(x: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    if x.dtype.kind == "f":
        return np.mean(x.astype(np.float64), axis=axis, keepdims=keepdims)
    count = int(np.prod([x.shape[a] for a in axis], dtype=np.int64))
    quotient = total(x, axis=axis, keepdims=keepdims).astype(object)
    return np.array(np.sign(quotient) * (abs(quotient) // max(count, 1)))


def _product(x: np.ndarray, **where: object) -> np.ndarray:
    return np.prod(wide(x), dtype=wide(x).dtype, **where)


def bounds(dtype: np.dtype) -> tuple[float, float]:
    """The smallest and the largest value of an element type; infinities for floats."""
    if dtype.kind == "f":
        return -np.inf, np.inf
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def _largest(x: np.ndarray, **where: object) -> np.ndarray:
    return np.max(x, initial=x.dtype.type(bounds(x.dtype)[0]), **where)


def _smallest(x: np.ndarray, **where: object) -> np.ndarray:
    return np.min(x, initial=x.dtype.type(bounds(x.dtype)[1]), **where)


def _log_sum_exp(x: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    exact = x.astype(np.float64)
    peak = np.max(exact, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isinf(peak), 0.0, peak)
    sums = np.sum(np.exp(exact - shift), axis=axis, keepdims=True)
    result = np.log(sums) + shift
    return result if keepdims else np.squeeze(result, axis)


REDUCERS: dict[type[ops.Reduction], Reducer] = {
    ops.ReduceSumOp: total,
    ops.ReduceMeanOp: _mean,
    ops.ReduceProdOp: _product,
    ops.ReduceMaxOp: _largest,
    ops.ReduceMinOp: _smallest,
    ops.ReduceL1Op: lambda x, **where: total(np.abs(x), **where),
    ops.ReduceL2Op: lambda x, **where: np.sqrt(total(x.astype(np.float64) ** 2, **where)),
    ops.ReduceSumSquareOp: lambda x, **where: total(wide(x) * wide(x), **where),
    ops.ReduceLogSumOp: lambda x, **where: np.log(total(x.astype(np.float64), **where)),
    ops.ReduceLogSumExpOp: _log_sum_exp,
}
"""Reduction → its function of an array, `axis` and `keepdims`."""


def _reduction(reducer: Reducer) -> Callable[[ops.Reduction, np.ndarray], np.ndarray]:
    def reduce(op: ops.Reduction, x: np.ndarray) -> np.ndarray:
        result = reducer(x, axis=op.reduced_axes(), keepdims=flag(op.keepdims))
        return np.asarray(result).astype(x.dtype)

    return reduce


for _operator, _reducer in REDUCERS.items():
    semantics(_operator)(_reduction(_reducer))


def _position(op: ops.ArgMaxOp | ops.ArgMinOp, x: np.ndarray, find: Callable[..., np.ndarray]) -> np.ndarray:
    axis, keepdims = integer(op.axis), flag(op.keepdims)
    if not flag(op.select_last_index):
        return np.asarray(find(x, axis=axis, keepdims=keepdims), np.int64)
    return np.asarray(x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis, keepdims=keepdims), np.int64)


@semantics(ops.ArgMaxOp)
def arg_max(op: ops.ArgMaxOp, x: np.ndarray) -> np.ndarray:
    """The first or last position of the maximum."""
    return _position(op, x, np.argmax)


@semantics(ops.ArgMinOp)
def arg_min(op: ops.ArgMinOp, x: np.ndarray) -> np.ndarray:
    """The first or last position of the minimum."""
    return _position(op, x, np.argmin)


def _running(op: ops.CumSumOp | ops.CumProdOp, x: np.ndarray, ufunc: np.ufunc) -> np.ndarray:
    axis = integer(op.axis)
    if x.ndim == 0:
        return x if not flag(op.exclusive) else np.full_like(x, ufunc.identity)
    ordered = np.flip(wide(x), axis) if flag(op.reverse) else wide(x)
    result = ufunc.accumulate(ordered, axis=axis, dtype=ordered.dtype)
    if flag(op.exclusive):
        result = np.roll(result, 1, axis)
        np.moveaxis(result, axis, 0)[:1] = ufunc.identity
    return (np.flip(result, axis) if flag(op.reverse) else result).astype(x.dtype)


@semantics(ops.CumSumOp)
def cum_sum(op: ops.CumSumOp, x: np.ndarray) -> np.ndarray:
    """Running sums."""
    return _running(op, x, np.add)


@semantics(ops.CumProdOp)
def cum_prod(op: ops.CumProdOp, x: np.ndarray) -> np.ndarray:
    """Running products."""
    return _running(op, x, np.multiply)


@semantics(ops.TopKOp)
def top_k(op: ops.TopKOp, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A stable sort; descending order sorts the reversed array, so that equal elements keep their order."""
    axis, largest = integer(op.axis), flag(op.largest)
    if largest:
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    indices = np.take(order, range(integer(op.k)), axis=axis).astype(np.int64)
    return np.take_along_axis(x, indices, axis), indices
