"""Meaning of `generic`: each stage on whole arrays over the index space."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.generic import GenericOp, result_axes, yielded_rows
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.stages import StageOp
from glow_mlir.interpreter.index_space import as_stored, index_array, signless_array
from glow_mlir.interpreter.scalar import evaluate, evaluate_op
from glow_mlir.ir.registry import semantics
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
}
"""Word of a fold → how it folds an array along axes, and what it gives for no elements."""


@semantics(GenericOp)
def generic(op: GenericOp, sources: Sequence[Array]) -> Array:
    """What the chain of stages gives; sums of f32 are taken in the order of numpy."""
    maps, kinds = op.own_maps(), op.kinds()
    extents = space_of(maps, len(kinds), [array.shape for array in sources])
    block = op.own_body()
    seen = [signless_array(index_array(array, affine)) for array, affine in zip(sources, maps, strict=False)]
    values: dict[SSAValue, Any] = dict(zip(block.args, seen, strict=True))
    for inner in own_operations(block):
        if isinstance(inner, StageOp):
            _run_stage(inner, values, extents)
        elif inner.results:
            evaluate_op(inner, values)
    (result,) = yielded_rows(block)
    axes = result_axes(op)
    whole = np.broadcast_to(values[result], [size if d in axes else 1 for d, size in enumerate(extents)])
    rest = tuple(d for d in range(len(extents)) if d not in axes)
    stored = np.ascontiguousarray(whole.transpose((*axes, *rest)).reshape([extents[axis] for axis in axes]))
    return as_stored(stored, numpy_dtype(op.result_element()), stored.shape)


def space_of(maps: Sequence[AffineMap], rank: int, shapes: Sequence[Shape]) -> Shape:
    """The sizes of an index space of that rank, of which maps name the axes of arrays of these shapes."""
    sizes: dict[int, int] = {}
    for affine, shape in zip(maps, shapes, strict=False):
        for expression, size in zip(affine.results, shape, strict=True):
            if isinstance(expression, AffineDimExpr):
                sizes[expression.position] = size
    return tuple(sizes[dimension] for dimension in range(rank))


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
            folded = fold(whole, axis=along, keepdims=True, initial=initial(array.dtype))
            values[result] = folded.astype(array.dtype)  # numpy sums integers in wider ones.
