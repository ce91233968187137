"""Arrays over index spaces: operands indexed by their maps, and elements in the types of bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, cast

import numpy as np
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap, AffineSymExpr

from glow_mlir.dialects.affine_maps import sums_in
from glow_mlir.dialects.shapes import Shape
from glow_mlir.support.dtypes import signless_dtype


def index_array(array: np.ndarray, affine: AffineMap) -> np.ndarray:
    """Broadcast `array` to the index space of `affine`, with axes reordered and inserted."""
    index: list[Any] = []
    axes: list[int] = []
    for expression in affine.results:
        if isinstance(expression, AffineConstantExpr):
            index.append(expression.value)
        else:
            assert isinstance(expression, AffineDimExpr)
            index.append(slice(None))
            axes.append(expression.position)
    order = sorted(range(len(axes)), key=lambda position: axes[position])
    selected = array[(*index, ...)].transpose(order)  # The ellipsis keeps a single element an array to write to.
    present = set(axes)
    return selected[(*(slice(None) if d in present else np.newaxis for d in range(affine.num_dims)), ...)]


def read_array(
    array: np.ndarray, affine: AffineMap, extents: Sequence[int], symbol: Callable[[int, int], np.ndarray]
) -> np.ndarray:
    """
    Broadcast `array` to the index space of `affine`, with some axes read at the elements that its symbols are.

    `symbol` gives those of a number over the index space, for an axis of some size. Along dimensions of symbols, the
    index space has these `extents`, which may be less than the array's.
    """
    rank = affine.num_dims
    sizes = zip(affine.results, array.shape, strict=True)
    chosen = {axis: symbol(e.position, size) for axis, (e, size) in enumerate(sizes) if isinstance(e, AffineSymExpr)}
    if not chosen:
        return index_array(array, affine)
    whole: list[int] = []
    for axis, expression in enumerate(affine.results):
        if isinstance(expression, AffineDimExpr):
            place = expression.position
            is_apart = all(index.shape[place] == 1 for index in chosen.values())
            if is_apart and array.shape[axis] == extents[place]:
                whole.append(axis)
            else:
                chosen[axis] = np.arange(extents[place]).reshape([-1 if d == place else 1 for d in range(rank)])
        elif isinstance(expression, AffineConstantExpr):
            chosen[axis] = np.full((1,) * rank, expression.value)
    found = array.transpose((*chosen, *whole))[tuple(chosen.values())]
    positions = [cast(AffineDimExpr, affine.results[axis]).position for axis in whole]
    order = [rank + positions.index(d) if d in positions else d for d in range(rank)]
    return found.transpose((*order, *sorted(positions))).reshape([found.shape[axis] for axis in order])


def windows(
    array: np.ndarray, affine: AffineMap, extents: Shape, borders: Sequence[tuple[int, int]]
) -> tuple[np.ndarray, np.ndarray | bool]:
    """
    Elements over an index space with these sizes, by a map that may yield sums, and which of them are there.

    Outside of the array elements are 0. `borders` has how many of those there are along each axis, if any.
    """
    axes: list[AffineExpr] = list(affine.results)
    is_there: list[np.ndarray] = []
    for axis, terms in reversed(sums_in(affine).items()):
        dimensions, size = list(terms.steps), array.shape[axis]
        steps = (np.arange(extents[d]) * times for d, times in terms.steps.items())
        positions = reduce(np.add.outer, steps) + terms.offset
        before, after = borders[axis] if borders else (0, 0)
        own = AffineMap(affine.num_dims, 0, tuple(map(AffineDimExpr, dimensions)))
        is_there.append(index_array((positions >= -before) & (positions < size + after), own))
        first, last = (int(edge) for edge in (positions.min(initial=0), positions.max(initial=0)))
        widths = [(0, 0)] * array.ndim
        widths[axis] = max(0, -first), max(0, last - size + 1)
        array = (np.pad(array, widths) if any(widths[axis]) else array).take(positions + widths[axis][0], axis)
        axes[axis : axis + 1] = map(AffineDimExpr, dimensions)
    mask = reduce(np.logical_and, is_there) if is_there else True
    return index_array(array, AffineMap(affine.num_dims, 0, tuple(axes))), mask


def signless_array(array: np.ndarray) -> np.ndarray:
    """View integers as signless arrays, as bodies compute on them."""
    return array.view(signless_dtype(array.dtype))


def as_stored(array: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Broadcast a body's result to a shape, viewed as elements of a type of equal width."""
    array = np.broadcast_to(array, shape)
    return np.ascontiguousarray(array).reshape(shape).view(dtype) if array.dtype != dtype else array
