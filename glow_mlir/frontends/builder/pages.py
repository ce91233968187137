"""Pages in which decoders keep keys and values, as state of a module."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, i8
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import MaxOp, MulOp
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp
from glow_mlir.dialects.glow_high.indexing import GatherOp, ScatterNDOp
from glow_mlir.dialects.glow_high.pages import WritePagesOp
from glow_mlir.dialects.glow_high.quantization import QuantizeOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp
from glow_mlir.dialects.glow_high.storage import GetOp, SaveOp
from glow_mlir.dialects.shapes import sizes_of, tensor
from glow_mlir.dialects.sizes import static
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.support.dataclass import dataclass

SMALLEST_SCALE = 1e-30
"""What keys and values are divided by at least, so that zeros are no division by zero."""


@dataclass(frozen=True)
class Pages:
    """
    The pages that keys and values are kept in: how many, of how many tokens each, of which element type.

    With `shared`, a dictionary that begins empty, all layers use the same pages one after the other. It gets the
    storage and the content of each kind, which the caller saves.

    `copies` are two vectors of numbers: the first pages are copied to the second ones before anything is written.
    """

    count: int
    tokens: int
    element: Attribute
    shared: dict[str, tuple[str, SSAValue]] | None = None
    copies: tuple[SSAValue, SSAValue] | None = None

    def kept(
        self, node: NodeBuilder, kind: str, layer: int, rows: SSAValue, where: Sequence[SSAValue]
    ) -> tuple[SSAValue, SSAValue | None]:
        """
        The pages of a layer with the `keys` or `values` in `rows` [rows, heads, elements] of f32, by `kind`.

        Kinds that end with `values` are values.

        The second result are pages with their scales, if they are rounded to i8. `where` are the operands `table`,
        `sequences` and `positions` of `write_pages`.
        """
        if self.element != i8:
            return self._written(node, kind, layer, rows, where, self.element), None
        largest = node.emit(ReduceMaxOp, node.emit(AbsOp, rows), axes=(2,), keepdims=True)
        scales = node.emit(MulOp, largest, node.splat(1 / 127, largest))
        scales = node.emit(MaxOp, scales, node.splat(SMALLEST_SCALE, largest))
        rounded = node.emit(QuantizeOp, rows, scales, to=self.element)
        kept = self._written(node, f"{kind}_scales", layer, scales, where, f32)
        return self._written(node, kind, layer, rounded, where, self.element), kept

    def _written(
        self, node: NodeBuilder, kind: str, layer: int, rows: SSAValue, where: Sequence[SSAValue], element: Attribute
    ) -> SSAValue:
        """Pages with the rows, which are state; those of values have tokens in front of elements."""
        transposed = not kind.endswith("values")
        heads, size = static(sizes_of(rows)[1:])
        inner = (size, self.tokens) if transposed else (self.tokens, size)
        if self.shared is not None and kind in self.shared:
            storage, state = self.shared[kind]
        else:
            state = node.builder.add_open_state(f"{kind}.{layer}", tensor((self.count, heads, *inner), element))
            assert isinstance(state.owner, GetOp)
            storage = state.owner.storage_name
            state = self._copied(node, state)
        written = node.emit(WritePagesOp, state, rows, *where, transposed=transposed)
        if self.shared is None:
            node.insert(SaveOp.to(written, storage, node.location))
        else:
            self.shared[kind] = storage, written
        return written

    def _copied(self, node: NodeBuilder, state: SSAValue) -> SSAValue:
        """Pages with those copied that are to be."""
        if self.copies is None:
            return state
        sources, targets = self.copies
        rows = node.emit(ReshapeOp, targets, shape=(sizes_of(targets)[0], 1))
        return node.emit(ScatterNDOp, state, rows, node.emit(GatherOp, state, sources, axis=0))
