"""Semantics of forms of `generic`: each stage on whole arrays over the index space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from glow_mlir.constants.index_ranges import failure_of
from glow_mlir.dialects.affine_maps import dimensions_in
from glow_mlir.dialects.element_types import is_float, numpy_dtype
from glow_mlir.dialects.folds import UNSIGNED, Fold, known_fold
from glow_mlir.dialects.generic_form import GenericForm
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.generic import yielded_rows
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.stages import POSITION_FOLDS, RUNNING_FOLDS, IndicesOp, StageOp, element_at
from glow_mlir.interpreter.index_space import as_stored, index_array, read_array, signless_array, windows
from glow_mlir.interpreter.indexing import from_front
from glow_mlir.interpreter.scalar import FUNCTIONS, evaluate, evaluate_op, round_float
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.dtypes import unsigned_dtype

Array = np.ndarray


def _position(word: str, element: Attribute, x: Array, along: int) -> Array:
    """The index of an extreme along an axis, which keeps size 1; 0 for an empty axis."""
    extreme, is_last = POSITION_FOLDS[word]
    fold = known_fold(extreme, element)
    find: Callable[..., Any] = np.argmax if fold.kind.better == "gt" else np.argmin
    if not x.shape[along]:
        return np.zeros([1 if axis == along else size for axis, size in enumerate(x.shape)], np.int64)
    found = find(np.flip(_read(x, fold), along) if is_last else _read(x, fold), axis=along, keepdims=True)
    return x.shape[along] - 1 - found if is_last else found


def _running(word: str, element: Attribute, x: Array, along: int) -> Array:
    """Compute running totals along an axis."""
    name, exclusive, reverse = RUNNING_FOLDS[word]
    fold = known_fold(name, element)
    wide = x.astype(np.float64) if is_float(element) else x
    ordered = np.flip(wide, along) if reverse else wide
    found = _function(fold).accumulate(ordered, axis=along, dtype=ordered.dtype)
    if exclusive:
        found = np.roll(found, 1, along)
        np.moveaxis(found, along, 0)[:1] = fold.neutral(element)
    found = np.flip(found, along) if reverse else found
    return round_float(found, x.dtype) if is_float(element) else found


def _function(fold: Fold) -> np.ufunc:
    """The numpy function by which a fold combines two elements."""
    return cast(np.ufunc, FUNCTIONS[replace(fold, variant=min(fold.variant, 1)).operation])


def _folded(word: str, element: Attribute, x: Array, along: Shape, is_there: Array | bool) -> Array:
    """
    Fold the elements of an array that are there along axes, which keep size 1.

    Sums and products of floats are in f64, rounded once.
    """
    if word in POSITION_FOLDS:
        return _position(word, element, x, along[0])
    if word in RUNNING_FOLDS:
        return _running(word, element, x, along[0])
    fold = known_fold(word, element)
    if fold.kind.is_running and x.dtype.kind == "f":
        x = x.astype(np.float64)
    initial = np.asarray(fold.neutral(element)).astype(x.dtype)
    if is_there is not True:
        x = np.where(is_there, x, initial)
    found = _function(fold).reduce(_read(x, fold), axis=along, keepdims=True, initial=_read(initial, fold)[()])
    return found.view(x.dtype) if fold.variant == UNSIGNED else found


def _read(x: Array, fold: Fold) -> Array:
    """View signless elements as the type that a fold reads."""
    return x.view(unsigned_dtype(x.dtype)) if fold.variant == UNSIGNED else x


def run_form(form: GenericForm, arrays: Sequence[Array], op: HighOp) -> Array:
    """
    Evaluate a chain of stages of an operator on operands; f32 sums are accumulated in numpy's order.

    Raises `ExecutionError` for an index out of range.
    """
    extents = cast(Shape, form.space([array.shape for array in arrays]))
    numbers = [index_array(arrays[read.operand], read.affine) for read in form.reads]

    def element_of_axis(symbol: int, size: int) -> Array:
        return from_front(op, numbers[symbol], size, failure_of(op))

    def read(array: Array, affine: AffineMap, borders: Sequence[tuple[int, int]]) -> tuple[Array, Array | bool]:
        if affine.num_symbols:
            return read_array(array, affine, extents, element_of_axis), True
        return windows(array, affine, extents, borders)

    borders = form.borders or [()] * len(arrays)
    seen = [read(*each) for each in zip(arrays, form.maps[:-1], borders, strict=True)]
    values: dict[SSAValue, Any] = dict(zip(form.block.args, [signless_array(array) for array, _ in seen], strict=True))
    masks = {value: mask for value, (_, mask) in zip(form.block.args, seen, strict=True) if mask is not True}
    for inner in own_operations(form.block):
        if isinstance(inner, StageOp):
            known = [mask for value, mask in masks.items() if value in inner.inputs]
            _run_stage(inner, values, extents, reduce(np.logical_and, known) if known else True)
        elif isinstance(inner, IndicesOp):
            shape = [size if d == inner.dimension else 1 for d, size in enumerate(extents)]
            values[inner.row] = np.arange(
                extents[inner.dimension], dtype=numpy_dtype(element_at(inner.row.type))
            ).reshape(shape)
        elif inner.results:
            evaluate_op(inner, values)
    (result,) = yielded_rows(form.block)
    axes = dimensions_in(form.maps[-1])
    whole = np.broadcast_to(values[result], [size if d in axes else 1 for d, size in enumerate(extents)])
    rest = [d for d in range(len(extents)) if d not in axes]
    shape = tuple(extents[axis.position] if isinstance(axis, AffineDimExpr) else 1 for axis in form.maps[-1].results)
    stored = np.ascontiguousarray(whole.transpose((*axes, *rest))).reshape(shape)  # The first adds an axis to a scalar.
    return as_stored(stored, numpy_dtype(form.element), shape)


def _run_stage(stage: StageOp, values: dict[SSAValue, Any], extents: Shape, is_there: Array | bool) -> None:
    """Add the results of a stage, whose folds take the elements that are there, to the known values."""
    yielded = evaluate(stage.body.block, [values[value] for value in stage.inputs], stage.yielded, values)
    words, along = stage.words, stage.folded
    for index, (array, result) in enumerate(zip(yielded, stage.results, strict=True)):
        if index >= len(words):
            values[result] = array
            continue
        shape = np.broadcast_shapes(array.shape, [extents[d] if d in along else 1 for d in range(len(extents))])
        with np.errstate(all="ignore"):
            spread = np.broadcast_to(array, shape)
            folded = _folded(words[index], stage.yielded[index].type, spread, along, is_there)
        values[result] = folded.astype(numpy_dtype(element_at(result.type)))  # numpy widens sums of integers.
