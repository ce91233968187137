"""Affine maps from an index space to the axes of tensors and buffers: properties, checks and strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from glow_mlir.dialects.shapes import Shape, require, sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.identity import MAX_KEPT, kept_by_identity
from glow_mlir.support.symbols import Size, Sizes


def maps_attribute(maps: Sequence[AffineMap]) -> ArrayAttr[AffineMapAttr]:
    """Maps as a property."""
    return ArrayAttr(map(_map_attribute, maps))


@lru_cache(MAX_KEPT)
def _map_attribute(affine: AffineMap) -> AffineMapAttr:
    """The attribute of a map; equal maps share one."""
    return AffineMapAttr(affine)


@kept_by_identity
def affine_maps(attribute: Attribute | None) -> tuple[AffineMap, ...]:
    """The maps in a property; none where it is absent."""
    items: Sequence[Attribute] = cast("ArrayAttr[Attribute]", attribute).data if attribute is not None else ()
    return tuple(item.data for item in items if isinstance(item, AffineMapAttr))


@dataclass(frozen=True)
class Terms:
    """The terms of an affine expression: a factor for each dimension, and a constant."""

    steps: Mapping[int, int]
    offset: int

    @property
    def is_sum(self) -> bool:
        """Whether it is neither a dimension nor 0."""
        return list(self.steps.values()) != [1] if self.steps and not self.offset else bool(self.offset)

    def expression(self) -> AffineExpr:
        """The expression itself, as `d0 * 2 + d1 - 1`."""
        found: AffineExpr | None = None
        for position, step in self.steps.items():
            term = AffineDimExpr(position) if step == 1 else AffineDimExpr(position) * step
            found = term if found is None else found + term
        assert found is not None
        return found + self.offset if self.offset else found


@lru_cache(MAX_KEPT)
def terms_of(expression: AffineExpr) -> Terms | None:
    """The terms of an expression; `None` if it has a product of dimensions, a quotient or a remainder."""
    if isinstance(expression, AffineDimExpr):
        return Terms({expression.position: 1}, 0)
    if isinstance(expression, AffineConstantExpr):
        return Terms({}, expression.value)
    if not isinstance(expression, AffineBinaryOpExpr):
        return None
    left, right = terms_of(expression.lhs), terms_of(expression.rhs)
    if left is None or right is None:
        return None
    if expression.kind is AffineBinaryOpKind.Add and not left.steps.keys() & right.steps.keys():
        return Terms({**left.steps, **right.steps}, left.offset + right.offset)
    if expression.kind is AffineBinaryOpKind.Mul and not right.steps:
        return Terms({d: step * right.offset for d, step in left.steps.items()}, left.offset * right.offset)
    return None


def sums_in(affine: AffineMap) -> dict[int, Terms]:
    """The axes for which a map yields a sum: windows."""
    found = ((axis, terms_of(expression)) for axis, expression in enumerate(affine.results))
    return {axis: terms for axis, terms in found if terms is not None and terms.is_sum}


def verify_maps(
    values: Sequence[SSAValue],
    maps: Sequence[AffineMap],
    rank: int,
    symbols: Sequence[tuple[AffineMap, Sizes]] = (),
    may_be_sums: bool = False,
) -> dict[int, Size]:
    """
    Check that the map of each operand starts at an index space of that rank and fits its shape.

    Return the extent of each dimension. `symbols` has, for each symbol, the map and the shape of the operand that it is
    read from; along the dimensions of these maps, other operands may be longer.
    Raises `VerifyException` where a map yields anything but dimensions, 0, these symbols and, with `may_be_sums`, sums.
    """
    require(len(maps) == len(values), f"{len(values)} operands need as many maps, got {len(maps)}")
    sizes: dict[int, Size] = {}
    longer: list[tuple[int, Size]] = []
    for value, affine in zip(values, maps, strict=True):
        shape = sizes_of(value)
        require(affine.num_symbols in (0, len(symbols)), f"map {affine} has not {len(symbols)} symbols")
        of_symbols = {number for symbol in symbols_in(affine) for number in dimensions_in(symbols[symbol][0])}
        require(affine.num_dims == rank, f"map {affine} has not {rank} dimensions")
        require(len(affine.results) == len(shape), f"map {affine} does not fit shape {shape}")
        used = dimensions_in(affine)
        require(len(set(used)) == len(used), f"map {affine} yields a dimension twice")
        sums = sums_in(affine) if may_be_sums else {}
        for axis, (expression, size) in enumerate(zip(affine.results, shape, strict=True)):
            if isinstance(expression, AffineDimExpr) and expression.position in of_symbols:
                longer.append((expression.position, size))
            elif isinstance(expression, AffineDimExpr):
                known = sizes.setdefault(expression.position, size)
                require(known == size, f"dimension d{expression.position} is {known} and {size} long")
            elif axis not in sums and not isinstance(expression, AffineSymExpr):
                is_zero = isinstance(expression, AffineConstantExpr) and expression.value == 0
                require(is_zero, f"map {affine} yields {expression}, neither a dimension nor 0")
                require(smallest(size) > 0, f"map {affine} reads the first of {size} elements")
    for affine, shape in symbols:
        for expression, size in zip(affine.results, shape, strict=True):
            if isinstance(expression, AffineDimExpr):
                known = sizes.setdefault(expression.position, size)
                require(known == size, f"dimension d{expression.position} is {known} and {size} long")
    for number, size in longer:
        extent = sizes[number]
        fits = extent == size or largest(extent) <= smallest(size)
        require(fits, f"dimension d{number} is {extent} long, and an axis that it reads {size}")
    return sizes


def broadcast_map(shape: Sizes, space: Sizes) -> AffineMap:
    """The map by which an operand of `shape` broadcasts over the index space `space`."""
    first = len(space) - len(shape)
    results = [
        AffineConstantExpr(0) if size == 1 and space[first + axis] != 1 else AffineDimExpr(first + axis)
        for axis, size in enumerate(shape)
    ]
    return AffineMap(len(space), 0, tuple(results))


def strides_over(affine: AffineMap, strides: Shape) -> Shape:
    """For each dimension of the index space, its stride in elements in an operand with these strides."""
    steps = [0] * affine.num_dims
    for expression, stride in zip(affine.results, strides, strict=True):
        for position, times in (terms_of(expression) or Terms({}, 0)).steps.items():
            steps[position] += times * stride
    return tuple(steps)


def dimensions_in(affine: AffineMap) -> list[int]:
    """The dimensions that a map yields, those within sums included."""
    return [position for expression in affine.results for position in (terms_of(expression) or Terms({}, 0)).steps]


def symbols_in(affine: AffineMap) -> list[int]:
    """The symbols that a map yields."""
    return [expression.position for expression in affine.results if isinstance(expression, AffineSymExpr)]
