"""Meaning of forms of `generic`: each stage on whole arrays over the index space."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from glow_mlir.dialects.affine_maps import dimensions_in
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.generic_form import GenericForm
from glow_mlir.dialects.glow_high.generic import yielded_rows
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.stages import POSITION_FOLDS, IndicesOp, StageOp, element_at
from glow_mlir.interpreter.index_space import as_stored, index_array, signless_array
from glow_mlir.interpreter.scalar import evaluate, evaluate_op
from glow_mlir.ir.traversal import own_operations

Array = np.ndarray


def _unsigned(function: Callable[..., Any]) -> Callable[..., Any]:
    """A fold of integers that are read without a sign."""

    def fold(x: Array, axis: Shape, keepdims: bool, initial: int) -> Array:
        kind = x.dtype.str.replace("i", "u")
        return function(x.view(kind), axis=axis, keepdims=keepdims, initial=initial).view(x.dtype)

    return fold


def _lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def _position(find: Callable[..., Any], is_last: bool) -> Callable[..., Any]:
    """A fold into the index of an extreme, 0 where there is none."""

    def fold(x: Array, axis: Shape, keepdims: bool, initial: int) -> Array:
        (along,) = axis
        if not x.shape[along]:
            return np.zeros([1 if d == along else size for d, size in enumerate(x.shape)], np.int64)
        found = find(np.flip(x, along) if is_last else x, axis=along, keepdims=keepdims)
        return x.shape[along] - 1 - found if is_last else found

    return fold


def _positions(word: str, is_last: bool) -> Callable[..., Any]:
    """The fold into the index of an extreme that is folded by a word."""
    find: Callable[..., Any] = np.argmax if word.startswith("max") else np.argmin

    def find_unsigned(x: Array, axis: int, keepdims: bool) -> Array:
        return find(x.view(x.dtype.str.replace("i", "u")), axis=axis, keepdims=keepdims)

    return _position(find_unsigned if word.endswith("ui") else find, is_last)


FOLDS: Mapping[str, tuple[Callable[..., Any], Callable[[np.dtype], Any]]] = {
    "add": (np.add.reduce, lambda _: 0),
    "mul": (np.multiply.reduce, lambda _: 1),
    "maximumf": (np.maximum.reduce, _lowest),
    "minimumf": (np.minimum.reduce, _highest),
    "maxnumf": (np.fmax.reduce, _lowest),
    "minnumf": (np.fmin.reduce, _highest),
    "maxsi": (np.maximum.reduce, _lowest),
    "minsi": (np.minimum.reduce, _highest),
    "maxui": (_unsigned(np.maximum.reduce), lambda _: 0),
    "minui": (_unsigned(np.minimum.reduce), lambda dtype: np.iinfo(dtype.str.replace("i", "u")).max),
    "and": (np.bitwise_and.reduce, lambda _: -1),
    "or": (np.bitwise_or.reduce, lambda _: 0),
    "xor": (np.bitwise_xor.reduce, lambda _: 0),
    **{word: (_positions(extreme, is_last), lambda _: 0) for word, (extreme, is_last) in POSITION_FOLDS.items()},
}
"""Word of a fold → how it folds an array along axes, and what it gives for no elements."""


def run_form(form: GenericForm, arrays: Sequence[Array]) -> Array:
    """What a chain of stages gives for operands; sums of f32 are taken in the order of numpy."""
    extents = cast(Shape, form.space([array.shape for array in arrays]))
    seen = [signless_array(index_array(array, affine)) for array, affine in zip(arrays, form.maps, strict=False)]
    values: dict[SSAValue, Any] = dict(zip(form.block.args, seen, strict=True))
    for inner in own_operations(form.block):
        if isinstance(inner, StageOp):
            _run_stage(inner, values, extents)
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
    stored = np.ascontiguousarray(whole.transpose((*axes, *rest))).reshape(shape)  # The first makes one axis of none.
    return as_stored(stored, numpy_dtype(form.element), shape)


def _run_stage(stage: StageOp, values: dict[SSAValue, Any], extents: Shape) -> None:
    """Add the results of a stage to the values that there are."""
    yielded = evaluate(stage.body.block, [values[value] for value in stage.inputs], stage.yielded, values)
    words, along = stage.words, stage.folded
    for place, (array, result) in enumerate(zip(yielded, stage.results, strict=True)):
        if place >= len(words):
            values[result] = array
            continue
        shape = np.broadcast_shapes(array.shape, [extents[d] if d in along else 1 for d in range(len(extents))])
        fold, initial = FOLDS[words[place]]
        with np.errstate(all="ignore"):
            whole = np.broadcast_to(array, shape)
            # Sums and products of floats are those of f64, rounded once.
            wide = whole.astype(np.float64) if words[place] in ("add", "mul") and array.dtype.kind == "f" else whole
            folded = fold(wide, axis=along, keepdims=True, initial=initial(wide.dtype))
            values[result] = folded.astype(numpy_dtype(element_at(result.type)))  # numpy sums integers in wider ones.
