"""Pages in which decoders keep keys and values, as state of a module."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.glow_high.pages import WritePagesOp
from glow_mlir.dialects.glow_high.storage import GetOp, SaveOp
from glow_mlir.dialects.shapes import sizes_of, tensor
from glow_mlir.dialects.sizes import static
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Pages:
    """The pages that keys and values are kept in: how many, of how many tokens each, of which element type."""

    count: int
    tokens: int
    element: Attribute

    def written(self, node: NodeBuilder, name: str, rows: SSAValue, where: Sequence[SSAValue]) -> SSAValue:
        """
        The pages `name`, which are state, with keys or values `rows` [rows, heads, elements] of f32 written.

        `where` are the operands `table`, `sequences` and `positions` of `write_pages`. Pages whose name begins with
        `keys` have tokens as their last axis.
        """
        transposed = name.startswith("keys")
        heads, size = static(sizes_of(rows)[1:])
        inner = (size, self.tokens) if transposed else (self.tokens, size)
        state = node.builder.add_open_state(name, tensor((self.count, heads, *inner), self.element))
        assert isinstance(state.owner, GetOp)
        written = node.emit(WritePagesOp, state, rows, *where, transposed=transposed)
        node.insert(SaveOp.to(written, state.owner.storage_name, node.location))
        return written
