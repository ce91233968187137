"""
Tiles of images, as seen by the shared functions that transform inputs or outputs tile by tile.

Tiles are numbered through all images, line by line. Sizes and steps are arguments, so that layers share the functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from xdsl.ir import Attribute

from glow_mlir.codegen.bodies import Epilogue, ExtraOperand
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.shared_function import SharedFunction
from glow_mlir.codegen.builder.types import index_type, ptr
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.tile_store import ExtraKind
from glow_mlir.support.dataclass import dataclass

GRID = ("first", "count", "across", "image_tiles")
"""A block of tiles: number of the first tile, number of tiles; and the numbers of tiles per line and per image."""

STEPS = ("image_step", "line_step", "pixel_step")
"""Steps in elements from image to image, line to line and pixel to pixel."""


@dataclass(frozen=True)
class Tiles:
    """The tiles of a block within a shared function; each covers `height` lines of `width` pixels."""

    b: Builder
    given: dict[str, Value]
    height: int = 1
    width: int = 1

    def origin(self, index: Value) -> tuple[Value, Value, Value]:
        """Return the image of a tile of the block, and the line and column of its first pixel."""
        tile = self.given["first"] + index
        inside = tile % self.given["image_tiles"]
        across = self.given["across"]
        return (
            tile // self.given["image_tiles"],
            inside // across * self.height,
            inside % across * self.width,
        )


def offset_of(position: tuple[Value, Value, Value], steps: Sequence[Value]) -> Value:
    """Return the element offset of a pixel, given as (image, line, column), for some steps."""
    image, line, pixel = (index * step for index, step in zip(position, steps, strict=True))
    return image + line + pixel


@dataclass(frozen=True)
class TileOutput(SharedFunction):
    """
    A function that finishes tiles: adds the bias, applies the epilogue and stores pixels, one vector at a time.

    `extras` are the extra operands of the epilogue, those that it writes first.
    """

    element: Attribute
    lanes: int
    bias: bool
    epilogue: Epilogue | None
    extras: tuple[ExtraKind, ...]

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        numbers = ((name, index_type) for name in (*GRID, *STEPS))
        return [("output", ptr), ("bias", ptr), *numbers, *extra_parameters(self.extras)]

    @classmethod
    def of(cls, operands: ProductOperands, lanes: int, **own: Any) -> Self:
        """Return the function that finishes a product; a subclass gets further fields as `own`."""
        bias, extras = operands.bias is not None, extra_kinds(operands.extras)
        return cls(element=operands.element, lanes=lanes, bias=bias, epilogue=operands.epilogue, extras=extras, **own)

    @property
    def output_element(self) -> Attribute:
        """The element type of the output."""
        return self.element if self.epilogue is None else self.epilogue.element

    def store(self, b: Builder, given: dict[str, Value], value: Value, starts: Sequence[Value], column: Index) -> None:
        """Pass one vector of a pixel, from a column on, through the epilogue and store it."""
        output = starts[0] + column
        if self.epilogue is None:
            b.store(value, given["output"].at(output, self.element))
            return
        extras, offsets = extra_vectors(given, self.extras, starts[1:], column)
        steps = [1, *(extra.strides[-1] for extra in extras)]
        self.epilogue.store(b, given["output"], extras, [output, *offsets], steps, value)


@dataclass(frozen=True)
class TiledProduct:
    """The state shared by the loops of a product that goes by tiles: operands, and scratch buffers."""

    b: Builder
    operands: ProductOperands
    scratch: tuple[Value, ...]

    @property
    def element(self) -> Attribute:
        """The element type of the accumulators."""
        return self.operands.element

    @property
    def lanes(self) -> int:
        """The number of elements of a vector."""
        return self.b.target.vector_width(self.element)

    def destination(self, column: Index) -> dict[str, Index]:
        """Return arguments of a `TileOutput` for columns from `column` on: addresses, and steps of extra operands."""
        output = self.operands.out.at(column, self.operands.output_element)
        bias = self.operands.bias_at(column)
        return {"output": output, "bias": bias, **extra_arguments(self.operands.extras, column)}


_AXES = ("image", "line", "pixel")


def extra_kinds(extras: Sequence[ExtraOperand]) -> tuple[ExtraKind, ...]:
    """Return the kinds of extra operands over images, lines, pixels and columns."""
    return tuple(ExtraKind(extra.element, True, extra.spread) for extra in extras)


def extra_parameters(kinds: Sequence[ExtraKind]) -> list[tuple[str, Attribute]]:
    """Return the parameters of a shared function for such extra operands."""
    pointers: list[tuple[str, Attribute]] = [(f"extra{index}", ptr) for index in range(len(kinds))]
    return [*pointers, *((f"extra{index}_{axis}", index_type) for index in range(len(kinds)) for axis in _AXES)]


def pixel_steps(given: dict[str, Value], kinds: Sequence[ExtraKind]) -> list[list[Value]]:
    """
    Return the steps from image to image, line to line and pixel to pixel, of the input or output, then of each extra
    operand.
    """
    extras = ([given[f"extra{index}_{axis}"] for axis in _AXES] for index in range(len(kinds)))
    return [[given[step] for step in STEPS], *extras]


def pixel_offsets(
    given: dict[str, Value], kinds: Sequence[ExtraKind], position: tuple[Value, Value, Value]
) -> list[Value]:
    """Return the element offset of a pixel in the input or output, then in each extra operand."""
    return [offset_of(position, steps) for steps in pixel_steps(given, kinds)]


def extra_vectors(
    given: dict[str, Value], kinds: Sequence[ExtraKind], offsets: Sequence[Value], column: Index
) -> tuple[list[ExtraOperand], list[Value]]:
    """Return the extra operands, and the offset in each of the vector from a column on, by its `pixel_offsets`."""
    extras = [kind.extra(given[f"extra{index}"]) for index, kind in enumerate(kinds)]
    return extras, [offset if extra.spread else offset + column for offset, extra in zip(offsets, extras, strict=True)]


def extra_arguments(extras: Sequence[ExtraOperand], column: Index) -> dict[str, Index]:
    """Return the arguments for `extra_parameters`, for columns from `column` on."""
    arguments: dict[str, Index] = {}
    for index, extra in enumerate(extras):
        arguments[f"extra{index}"] = extra.pointer.at(0 if extra.spread else column, extra.element)
        for axis, step in zip(_AXES, extra.strides[:3], strict=True):
            arguments[f"extra{index}_{axis}"] = step
    return arguments
