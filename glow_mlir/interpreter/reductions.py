"""Meaning of reductions: sums and products in f64 (integers exactly, wrapping), rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.interpreter.linear import wide
from glow_mlir.ir.registry import semantics
from glow_mlir.support.dtypes import is_float_dtype

Axes = tuple[int, ...]
Reducer = Callable[[np.ndarray, Axes, bool], np.ndarray]
"""A function of an array, the axes to reduce, and whether to keep them."""


def _sum(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    """The sum, in f64 for floats; integers keep their type and wrap."""
    exact = wide(x)
    return np.sum(exact, axis=axes, keepdims=keepdims, dtype=exact.dtype)


def _mean(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    total = _sum(x, axes, keepdims)
    count = math.prod(x.shape[axis] for axis in axes)
    if is_float_dtype(x.dtype):
        return total / count if count else np.full_like(total, np.nan)
    # Python's integers, for the quotient of the smallest 64-bit integer fits no float.
    exact = total.astype(object)
    return np.asarray(np.where(exact < 0, -(-exact // max(count, 1)), exact // max(count, 1)))


def _product(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    exact = wide(x)
    return np.prod(exact, axis=axes, keepdims=keepdims, dtype=exact.dtype)


def bounds(dtype: np.dtype) -> tuple[float, float]:
    """The smallest and the largest value of an element type; infinities for floats."""
    if is_float_dtype(dtype):
        return -np.inf, np.inf
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def _largest(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    return np.max(x, axis=axes, keepdims=keepdims, initial=x.dtype.type(bounds(x.dtype)[0]))


def _smallest(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    return np.min(x, axis=axes, keepdims=keepdims, initial=x.dtype.type(bounds(x.dtype)[1]))


def _absolute_sum(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    return _sum(np.abs(x), axes, keepdims)


def _square_sum(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    return _sum(wide(x) * wide(x), axes, keepdims)


def _norm(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    return np.sqrt(_sum(x.astype(np.float64) ** 2, axes, keepdims))


def _log_sum(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    return np.log(_sum(x.astype(np.float64), axes, keepdims))


def _log_sum_exp(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    exact = x.astype(np.float64)
    peak = np.max(exact, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isinf(peak), 0.0, peak)
    result = np.log(_sum(np.exp(exact - shift), axes, True)) + shift
    return result if keepdims else np.squeeze(result, axes)


REDUCERS: dict[type[ops.Reduction], Reducer] = {
    ops.ReduceSumOp: _sum,
    ops.ReduceMeanOp: _mean,
    ops.ReduceProdOp: _product,
    ops.ReduceMaxOp: _largest,
    ops.ReduceMinOp: _smallest,
    ops.ReduceL1Op: _absolute_sum,
    ops.ReduceL2Op: _norm,
    ops.ReduceSumSquareOp: _square_sum,
    ops.ReduceLogSumOp: _log_sum,
    ops.ReduceLogSumExpOp: _log_sum_exp,
}
"""Reduction → its meaning."""


def _reduction(reducer: Reducer) -> Callable[[ops.Reduction, np.ndarray], np.ndarray]:
    def reduce(op: ops.Reduction, x: np.ndarray) -> np.ndarray:
        result = reducer(x, op.reduced_axes(), flag(op.keepdims))
        return np.asarray(result).astype(x.dtype)

    return reduce


for _operator, _reducer in REDUCERS.items():
    semantics(_operator)(_reduction(_reducer))


def _position(op: ops.ArgMaxOp | ops.ArgMinOp, x: np.ndarray, find: Callable[..., np.ndarray]) -> np.ndarray:
    axis, keepdims = integer(op.axis), flag(op.keepdims)
    if not x.shape[axis]:
        return np.asarray(np.sum(x, axis=axis, keepdims=keepdims), np.int64)
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
    """
    A stable sort; descending order sorts the reversed array, so that equal elements keep their order.

    Of floats it sorts f64: numpy puts NaN last, which `ml_dtypes` does not.
    """
    axis, largest, keys = integer(op.axis), flag(op.largest), wide(x)
    if largest:
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(keys, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(keys, axis=axis, kind="stable")
    indices = np.take(order, range(integer(op.k)), axis=axis).astype(np.int64)
    return np.take_along_axis(x, indices, axis), indices
