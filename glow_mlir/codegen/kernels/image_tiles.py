"""
Tiles of images, as the shared functions see them that transform what is read or written tile by tile.

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
from glow_mlir.codegen.kernels.product_operands import ProductOperands
from glow_mlir.codegen.kernels.tile_store import ExtraKind
from glow_mlir.support.dataclass import dataclass

GRID = ("first", "count", "across", "image_tiles")
"""A block of tiles: the number of the first, how many there are; and of all tiles, those of a line and of an image."""

STEPS = ("image_step", "line_step", "pixel_step")
"""Elements from image to image, line to line and pixel to pixel."""


@dataclass(frozen=True)
class Tiles:
    """The tiles of a block, inside one of the shared functions, and how many lines and pixels each of them covers."""

    b: Builder
    given: dict[str, Value]
    height: int = 1
    width: int = 1

    def place(self, index: Value) -> tuple[Value, Value, Value]:
        """The image of a tile of the block, and the line and column of its first pixel."""
        tile = self.given["first"] + index
        inside = tile % self.given["image_tiles"]
        across = self.given["across"]
        return (
            tile // self.given["image_tiles"],
            inside // across * self.height,
            inside % across * self.width,
        )


def offset_of(place: tuple[Value, Value, Value], steps: Sequence[Value]) -> Value:
    """How many elements a pixel is from the first, by the steps between images, lines and pixels."""
    image, line, pixel = (index * step for index, step in zip(place, steps, strict=True))
    return image + line + pixel


@dataclass(frozen=True)
class TileOutput(SharedFunction):
    """
    A function that finishes tiles: adds the bias, applies the epilogue and stores pixels, one vector at a time.

    `extras` are the further operands of the epilogue, those that it writes first.
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
        """The function that finishes a product; a class of its own has further fields, which are its `own`."""
        bias, extras = operands.bias is not None, extra_kinds(operands.extras)
        return cls(element=operands.element, lanes=lanes, bias=bias, epilogue=operands.epilogue, extras=extras, **own)

    @property
    def output_element(self) -> Attribute:
        """The element type of the output."""
        return self.element if self.epilogue is None else self.epilogue.element

    def store(self, b: Builder, given: dict[str, Value], value: Value, places: Sequence[Value], column: Index) -> None:
        """Pass one vector of a pixel, from a column on, through the epilogue and store it."""
        output = places[0] + column
        if self.epilogue is None:
            b.store(value, given["output"].at(output, self.element))
            return
        extras, offsets = extra_vectors(given, self.extras, places[1:], column)
        steps = [1, *(extra.strides[-1] for extra in extras)]
        self.epilogue.store(b, given["output"], extras, [output, *offsets], steps, value)


@dataclass(frozen=True)
class TiledProduct:
    """What the loops of a product share that goes by tiles: its operands, and buffers for sums and products of them."""

    b: Builder
    operands: ProductOperands
    scratch: tuple[Value, ...]

    @property
    def element(self) -> Attribute:
        """The element type of what is summed."""
        return self.operands.element

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return self.b.target.vector_width(self.element)

    def destination(self, column: Index) -> dict[str, Index]:
        """What a `TileOutput` is told of the columns from one on: addresses, and the steps of extra operands."""
        output = self.operands.out.at(column, self.operands.output_element)
        bias = self.operands.bias_at(column)
        return {"output": output, "bias": bias, **extra_arguments(self.operands.extras, column)}


_AXES = ("image", "line", "pixel")


def extra_kinds(extras: Sequence[ExtraOperand]) -> tuple[ExtraKind, ...]:
    """What a shared function has to know of extra operands over images, lines, pixels and columns."""
    return tuple(ExtraKind(extra.element, True, extra.spread) for extra in extras)


def extra_parameters(kinds: Sequence[ExtraKind]) -> list[tuple[str, Attribute]]:
    """The parameters of a shared function for such extra operands."""
    pointers: list[tuple[str, Attribute]] = [(f"extra{index}", ptr) for index in range(len(kinds))]
    return [*pointers, *((f"extra{index}_{axis}", index_type) for index in range(len(kinds)) for axis in _AXES)]


def pixel_steps(given: dict[str, Value], kinds: Sequence[ExtraKind]) -> list[list[Value]]:
    """
    Steps from image to image, line to line and pixel to pixel, of what is read or written, and of each extra operand.
    """
    extras = ([given[f"extra{index}_{axis}"] for axis in _AXES] for index in range(len(kinds)))
    return [[given[step] for step in STEPS], *extras]


def pixel_places(given: dict[str, Value], kinds: Sequence[ExtraKind], place: tuple[Value, Value, Value]) -> list[Value]:
    """Where what is read or written, and each extra operand, has a pixel, in elements."""
    return [offset_of(place, steps) for steps in pixel_steps(given, kinds)]


def extra_vectors(
    given: dict[str, Value], kinds: Sequence[ExtraKind], places: Sequence[Value], column: Index
) -> tuple[list[ExtraOperand], list[Value]]:
    """The extra operands, and where each has the vector of a pixel from a column on, by its `pixel_places`."""
    extras = [kind.extra(given[f"extra{index}"]) for index, kind in enumerate(kinds)]
    return extras, [place if extra.spread else place + column for place, extra in zip(places, extras, strict=True)]


def extra_arguments(extras: Sequence[ExtraOperand], column: Index) -> dict[str, Index]:
    """The arguments for `extra_parameters`, for columns from one on."""
    arguments: dict[str, Index] = {}
    for index, extra in enumerate(extras):
        arguments[f"extra{index}"] = extra.pointer.at(0 if extra.spread else column, extra.element)
        for axis, step in zip(_AXES, extra.strides[:3], strict=True):
            arguments[f"extra{index}_{axis}"] = step
    return arguments
