"""Products of decoders with what adapters add to them, each row by its own adapter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, EqualOp, WhereOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.decoders.adapters import Adapter, Pair
from glow_mlir.frontends.decoders.weights import Weights, gguf_order


class AdaptedProducts:
    """
    What `adapters` add to the products of a decoder; `chosen` [rows] is the number of each row's adapter, or 0.

    The matrices of all adapters stand below each other. A row is multiplied by all of them, which are thin, and keeps
    what its own adapter makes of it.
    """

    def __init__(self, adapters: Sequence[Adapter], weights: Weights, chosen: SSAValue | None) -> None:
        self._adapters, self._weights, self._chosen = adapters, weights, chosen
        self._used: list[set[str]] = [set() for _ in adapters]
        self._masks: dict[tuple[int, ...], SSAValue] = {}
        for adapter in adapters:
            if adapter.architecture not in (None, weights.family.architecture):
                reason = f"is for decoders of the architecture '{adapter.architecture}'"
                hint = f"that of this decoder is '{weights.family.architecture}'"
                raise ModelError(reason, file=str(adapter.path), node="general.architecture", hint=hint)

    def added(
        self,
        node: NodeBuilder,
        name: str,
        layer: int,
        rows: SSAValue,
        result: SSAValue,
        order: np.ndarray | None,
        stored: int,
    ) -> SSAValue:
        """
        The result [rows, size] of the product of `rows` [rows, depth] with a matrix, and what adapters add to it.

        `order` are the rows of the stored matrix, of which there are `stored`, if it is a part of them.
        """
        pairs = self._pairs(name, layer, order, (stored, sizes_of(rows)[-1]))
        if not pairs:
            return result
        down = np.concatenate([pair.down for _, pair in pairs])
        up = np.concatenate([pair.up for _, pair in pairs], axis=1)
        numbers = [number for number, pair in pairs for _ in pair.down]
        low = node.emit(MatMulOp, rows, node.constant(down, f"{node.name}.lora_a"), transpose_right=True)
        own = node.emit(WhereOp, self._mask(node, tuple(numbers)), low, node.splat(0, low))
        high = node.emit(MatMulOp, own, node.constant(up, f"{node.name}.lora_b"), transpose_right=True)
        return node.emit(AddOp, result, high)

    def check_all_used(self) -> None:
        """Raise `ModelError` if an adapter has a pair for what is no matrix of a layer."""
        for adapter, used in zip(self._adapters, self._used, strict=True):
            if unused := adapter.pairs.keys() - used:
                hint = "adapters are for the products of attention and feed-forward networks of the same decoder"
                raise ModelError("the decoder has no such product", file=str(adapter.path), node=min(unused), hint=hint)

    def _pairs(
        self, name: str, layer: int, order: np.ndarray | None, shape: tuple[object, ...]
    ) -> list[tuple[int, Pair]]:
        """The numbers of the adapters of a product, and their matrices in the order of its rows."""
        found: list[tuple[int, Pair]] = []
        for number, (adapter, used) in enumerate(zip(self._adapters, self._used, strict=True), start=1):
            own = adapter.name_of(name, layer, self._weights.family)
            if own is None:
                continue
            used.add(own)
            pair = adapter.pairs[own]
            if (given := (pair.up.shape[0], pair.down.shape[1])) != shape:
                reason = f"the pair is for a matrix of the shape {list(given)}, not {list(shape)}"
                raise ModelError(reason, file=str(adapter.path), node=own)
            rows = order
            if rows is None and adapter.kind == "gguf" and name in ("attn_q", "attn_k"):
                rows = gguf_order(self._weights.family, self._weights.config, name[-1])
            found.append((number, pair if rows is None else Pair(pair.down, pair.up[rows])))
        return found

    def _mask(self, node: NodeBuilder, numbers: tuple[int, ...]) -> SSAValue:
        """Whether each row's adapter is that of a column [rows, columns]; once for all products."""
        if numbers not in self._masks:
            assert self._chosen is not None
            column = node.emit(ReshapeOp, self._chosen, shape=(*sizes_of(self._chosen), 1))
            owners = node.constant(np.array([numbers], np.int64), "adapters.owners")
            self._masks[numbers] = node.emit(EqualOp, column, owners)
        return self._masks[numbers]
