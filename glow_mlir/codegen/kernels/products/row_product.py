"""The product of one row with a panel of packed weights, which is read forwards or backwards."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.shared_function import SharedFunction
from glow_mlir.codegen.builder.types import index_type, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.products.tiles import Tile
from glow_mlir.dialects.element_types import bit_width
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class RowProduct(SharedFunction):
    """
    The function that computes the product for the columns of a tile. `input` and `weights` point to the first elements,
    and advance by `input_step` and `weights_step` elements, which may be negative, `depth` times.

    With `rows` above 1, each step takes this number of rows of the panel, which is then only read forwards.
    """

    element: Attribute
    tile: Tile
    rows: int = 1

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        pointers = [(name, ptr) for name in ("output", "input", "weights")]
        steps = ("input_step", "weights_step") if self.rows == 1 else ()
        return [*pointers, *((name, index_type) for name in ("depth", *steps))]

    @property
    def readable(self) -> str:
        """A readable name of the function."""
        return f"row.{self.element}.{self.tile.vectors}"

    @property
    def ways(self) -> int:
        """The number of partial accumulators per column, enough to keep the multiply-add units busy."""
        return max(1, self.tile.accumulators // self.tile.vectors)

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        count, depth, together = self.tile.vectors, given["depth"], max(self.ways, self.rows)
        whole = depth if together == 1 else depth // together * together
        zero = b.constant(0.0, vector(self.element, self.tile.lanes))
        state = [*([zero] * (count * self.ways)), given["input"], given["weights"]]
        with b.loop(0, whole, together, carried=state) as loop:
            loop.set(*self._rows(b, given, loop.values, together))
        state = loop.results
        if together > 1:
            with b.loop(whole, depth, carried=state) as rest:
                rest.set(*self._rows(b, given, rest.values, 1))
            state = rest.results
        for v in range(count):
            total = state[v]
            for way in range(1, self.ways):
                total = total + state[way * count + v]
            given["output"].at(v * self.tile.lanes, self.element).store(total)

    def _rows(self, b: Builder, given: dict[str, Value], state: Sequence[Value], rows: int) -> list[Value]:
        """Return the state after `rows` rows of the panel, which take turns among the partial accumulators."""
        lanes, element, count = self.tile.lanes, self.element, self.tile.vectors
        input_step, weights_step = given.get("input_step", 1), given.get("weights_step", self.tile.panel)
        *accumulators, source, weights = state
        for row in range(rows):
            way = row % self.ways
            spread = b.splat(source.load(element), lanes)
            for v in range(count):
                address = weights.at(v * lanes, element)
                column = address.load(vector(element, lanes), align=lanes * bit_width(element) // 8)
                accumulators[way * count + v] = b.fma(spread, column, accumulators[way * count + v])
            source, weights = source.at(input_step, element), weights.at(weights_step, element)
        return [*accumulators, source, weights]
