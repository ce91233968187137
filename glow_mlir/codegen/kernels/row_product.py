"""One row times a panel of packed weights, which is read from its first row to its last one or the other way."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from glow_mlir.codegen.builder import Builder
from glow_mlir.codegen.kernels.tiles import Tile
from glow_mlir.codegen.shared_function import SharedFunction
from glow_mlir.codegen.target import element_bits
from glow_mlir.codegen.types import i64, ptr, vector
from glow_mlir.codegen.value import Value


@dataclass(frozen=True)
class RowProduct(SharedFunction):
    """
    The product for the columns of a tile. `input` and `weights` point to the first elements that are used, and move by
    `input_step` elements and by `weights_step` elements, which both may be negative, `depth` times.
    """

    element: Attribute
    tile: Tile

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        pointers = [(name, ptr) for name in ("output", "input", "weights")]
        return [*pointers, *((name, i64) for name in ("depth", "input_step", "weights_step"))]

    @property
    def readable(self) -> str:
        """What the function is called."""
        return f"row.{self.element}.{self.tile.vectors}"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        lanes, element, count = self.tile.lanes, self.element, self.tile.vectors
        type_ = vector(element, lanes)
        carried = [*([b.constant(0.0, type_)] * count), given["input"], given["weights"]]
        with b.loop(0, given["depth"], carried=carried) as loop:
            *sums, source, weights = loop.values
            spread = b.splat(source.load(element), lanes)
            for v in range(count):
                column = weights.at(v * lanes, element).load(type_, align=lanes * element_bits(element) // 8)
                sums[v] = b.fma(spread, column, sums[v])
            loop.set(*sums, source.at(given["input_step"], element), weights.at(given["weights_step"], element))
        for v, total in enumerate(loop.results[:count]):
            given["output"].at(v * lanes, element).store(total)
