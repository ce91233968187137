"""Sizes of free axes: those of inputs are given, and those of other tensors follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glow_mlir.frontends.builder.inputs import input_shapes
from glow_mlir.frontends.tflite.file import Subgraph, Tensor
from glow_mlir.frontends.tflite.names import Names
from glow_mlir.support.symbols import GivenDimension, Size, Sizes, product_of, quotient


def chosen_shapes(graph: Subgraph, inputs: Names, dimensions: Mapping[str, GivenDimension]) -> dict[int, Sizes]:
    """
    The shapes of inputs by the number of the tensor; free axes have the size of the file unless `dimensions` have one.

    Raises `OptionError` for a label that no input has, and for sizes that are none.
    """
    shapes = {name: graph.tensors[number].labelled(name) for number, name in inputs}
    known = {
        label: size
        for number, name in inputs
        for label, size in zip(shapes[name], graph.tensors[number].shape, strict=True)
        if isinstance(label, str)
    }
    found = input_shapes(shapes, {**known, **dimensions}, ())
    return {number: found[name] for number, name in inputs}


def followed(result: Tensor, operand: Tensor, now: Sizes) -> Sizes:
    """
    The shape of a result whose operand has the shape `now` instead of that of the file.

    Free axes of both correspond in their order, and grow alike, as a batch does. If their numbers differ, axes at the
    same position correspond. An operator whose sizes follow another rule does not fit this shape, and fails.
    """
    pairs = list(zip(result.free_axes, operand.free_axes, strict=False))
    if len(result.free_axes) != len(operand.free_axes):
        allowed = result.free_axes or range(len(result.shape))
        pairs = [(axis, axis) for axis in grown_axes(operand.shape, now) if axis in allowed]
    shape: list[Size] = [*result.shape]
    for axis, own in pairs:
        size = quotient(product_of((now[own], result.shape[axis])), operand.shape[own])
        shape[axis] = shape[axis] if size is None else size
    return tuple(shape)


def grown_axes(before: Sequence[int], now: Sizes) -> list[int]:
    """The axes with another size than before; none where the number of axes changed."""
    if len(before) != len(now):
        return []
    return [axis for axis, (old, new) in enumerate(zip(before, now, strict=True)) if old != new]
