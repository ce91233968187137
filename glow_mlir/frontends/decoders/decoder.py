"""The module of a decoder or an encoder, from its description and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import ModuleOp, f32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import GeluOp, ReluOp, SwishOp, TanhOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MinOp, MulOp
from glow_mlir.dialects.glow_high.elementwise_math import CosOp, SinOp
from glow_mlir.dialects.glow_high.indexing import GatherOp, ScatterNDOp
from glow_mlir.dialects.glow_high.normalization import LayerNormalizationOp, RmsNormalizationOp
from glow_mlir.dialects.glow_high.pages import PagedAttentionOp
from glow_mlir.dialects.glow_high.storage import SaveOp
from glow_mlir.dialects.shapes import sizes_of, tensor
from glow_mlir.frontends.builder.experts import Routing, mixture
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.builder.pages import Pages
from glow_mlir.frontends.builder.rotary import rotated
from glow_mlir.frontends.decoders.adapted_products import AdaptedProducts
from glow_mlir.frontends.decoders.adapters import Adapter
from glow_mlir.frontends.decoders.config import ADAPTER_INPUTS, FLOATS, RESULTS, ExpertsConfig
from glow_mlir.frontends.decoders.products import product, table_rows
from glow_mlir.frontends.decoders.rotation import Rotation
from glow_mlir.frontends.decoders.sound import sound_rows
from glow_mlir.frontends.decoders.weights import Matrix, Weights
from glow_mlir.support.symbols import Size

ACTIVATIONS: Mapping[str, tuple[type[HighOp], Mapping[str, str]]] = {
    "silu": (SwishOp, {}),
    "gelu": (GeluOp, {}),
    "gelu_tanh": (GeluOp, {"approximate": "tanh"}),
    "relu": (ReluOp, {}),
    "tanh": (TanhOp, {}),
}
"""Activation → its operator and properties."""


class Decoder:
    """
    Build the module of a decoder or an encoder.

    With `adapters`, each row has a number in the input `adapters`: that of its adapter from 1 on, or 0 for none.
    `sizes` are those of the free dimensions, such as `rows`, `sequences`, `pages` and `outputs`. Rows of products with
    quantized weights are rounded to `left_bits`, or not at all if that is 0. `memory_pages` are those for an encoder's
    rows, to which sequences attend if the description says so.
    """

    def __init__(
        self,
        weights: Weights,
        pages: Pages,
        sizes: Mapping[str, Size],
        left_bits: int,
        adapters: Sequence[Adapter] = (),
        memory_pages: Pages | None = None,
    ) -> None:
        self.config, self.weights, self.left_bits = weights.config, weights, left_bits
        self.builder = ModuleBuilder(frozenset(RESULTS))
        shapes = {**self.config.inputs, **(ADAPTER_INPUTS if adapters else {})}
        types = {
            name: tensor(
                tuple(sizes[size] if isinstance(size, str) else size for size in shape),
                f32 if name in FLOATS else i64,
            )
            for name, shape in shapes.items()
        }
        self.inputs = self.builder.add_inputs(types, {})
        self.rows = sizes["rows"]
        self._turns: dict[Rotation, tuple[SSAValue, SSAValue]] = {}
        self._shared: dict[str, tuple[str, SSAValue]] = {}
        """The pages of an encoder, which all layers use one after the other: kind → storage and content."""
        self.pages = pages if self.config.is_causal else replace(pages, shared=self._shared)
        if "copies" in self.inputs:
            self.pages = replace(self.pages, copies=(self.inputs["copied"], self.inputs["copies"]))
        self.memory_pages = memory_pages
        self._adapted = AdaptedProducts(adapters, weights, self.inputs.get("adapters"))

    def module(self, result: str, name: str = "main") -> ModuleOp:
        """
        The module, whose output `result` is one of `RESULTS`.

        Raises `ModelError` for tensors that are missing or do not fit.
        """
        rows = self._embedded()
        for layer in range(len(self.config.layers)):
            rows = self._layer(layer, rows)
        self._adapted.check_all_used()
        if result == "scores" and self.config.scores_mean:
            hidden = self._chosen(self._mean(self._last_norm(rows)))
        else:
            hidden = self._last_norm(self._chosen(rows))
        heads = {"logits": self._logits, "scores": self._scores}
        self.builder.add_output(result, heads[result](hidden) if result in heads else hidden)
        for storage, pages in self._shared.values():
            self.builder.function.block.add_op(SaveOp.to(pages, storage, self._node(storage).location))
        return self.builder.finish(name)

    def _chosen(self, rows: SSAValue) -> SSAValue:
        """The rows of which results are wanted."""
        return self._node("last").emit(GatherOp, rows, self.inputs["last"], axis=0)

    def _last_norm(self, rows: SSAValue) -> SSAValue:
        return self._norm("output_norm", None, rows) if self.config.has_last_norm else rows

    def _mean(self, rows: SSAValue) -> SSAValue:
        """The means of the rows of each sequence [sequences, width]; all of its rows are there."""
        node, lengths = self._node("mean"), self.inputs["lengths"]
        (sequences,) = sizes_of(lengths)
        zeros = node.splat(0.0, f32, (sequences, self.config.width))
        targets = node.emit(ReshapeOp, self.inputs["sequences"], shape=(self.rows, 1))
        sums = node.emit(ScatterNDOp, zeros, targets, rows, reduction="add")
        counts = node.emit(ReshapeOp, node.cast(lengths, f32), shape=(sequences, 1))
        return node.emit(DivOp, sums, counts)

    def _node(self, name: str, layer: int | None = None) -> NodeBuilder:
        """The builder of a node named after a tensor."""
        own = name if layer is None else f"blk.{layer}.{name}"
        return NodeBuilder(self.builder, name, own, named_location(own))

    # Tokens and logits

    def _table(self, name: str, rows: int) -> Matrix:
        return self.weights.matrix(name, None, (rows, self.config.width))

    def _embedded(self) -> SSAValue:
        """The rows of the table of embeddings, or of sound, and of the table of positions."""
        config, node = self.config, self._node("token_embd")
        if config.features:
            rows = sound_rows(self._node, self.weights, self.inputs["features"])
        else:
            rows = table_rows(node, self._table("token_embd", config.vocabulary), self.inputs["tokens"])
        rows = self._scaled(node, rows, config.embedding_scale)
        if config.token_types:
            node = self._node("token_types")
            rows = node.emit(
                AddOp, rows, table_rows(node, self._table(node.kind, config.token_types), self.inputs["types"])
            )
        if config.has_positions:
            node = self._node("position_embd")
            # Padding has negative positions, which count from the back, and any row will do.
            rows = node.emit(AddOp, rows, table_rows(node, self._positions_table(), self.inputs["positions"]))
        return self._norm("token_embd_norm", None, rows) if config.has_embedding_norm else rows

    def _positions_table(self) -> Matrix:
        tensor_ = self.weights.find("position_embd", None, "weight")
        if tensor_ is None:
            raise self.weights.error("position_embd", None, "the tensor is missing")
        whole, offset = self.weights.matrix_of(tensor_, None, None), self.config.position_offset
        if whole.rows < offset + self.config.context:
            reason = f"the table has {whole.rows} rows for {self.config.context} positions"
            raise self.weights.error("position_embd", None, reason)
        if not offset:
            return whole
        return self.weights.matrix_of(tensor_, np.arange(offset, whole.rows), None)

    def _logits(self, rows: SSAValue) -> SSAValue:
        config = self.config
        name = "output" if self.weights.has("output") else "token_embd"
        bias = self.weights.vector("output", None, config.vocabulary, "bias")
        node = self._node(name)
        logits = product(node, rows, self._table(name, config.vocabulary), bias, self.left_bits)
        return self._capped(node, self._scaled(node, logits, config.logit_scale), config.logit_cap)

    def _scores(self, rows: SSAValue) -> SSAValue:
        """The results of the head for classes, of one matrix or of two."""
        config = self.config
        for name, size in (("cls", config.width), ("cls.output", config.labels)):
            if name not in self.weights.family.heads:
                continue
            if name == "cls" and not self.weights.has(name):
                # llama.cpp's converter leaves the pooler of BERT out, without which scores are others.
                raise self.weights.error(name, None, "the head for scores has one matrix of two: the other is missing")
            node, bias = self._node(name), self.weights.vector(name, None, size, "bias")
            rows = product(node, rows, self._table(name, size), bias, self.left_bits)
            if name == "cls":
                operator, properties = ACTIVATIONS[config.head_activation]
                rows = node.emit(operator, rows, **properties)
                rows = self._norm("cls.norm", None, rows) if self.weights.has("cls.norm") else rows
        return rows

    def _scaled(self, node: NodeBuilder, value: SSAValue, factor: float) -> SSAValue:
        return value if factor == 1 else node.emit(MulOp, value, node.splat(factor, value))

    def _capped(self, node: NodeBuilder, value: SSAValue, cap: float) -> SSAValue:
        """cap · tanh(x / cap); the value itself for 0."""
        if not cap:
            return value
        return self._scaled(node, node.emit(TanhOp, self._scaled(node, value, 1 / cap)), cap)

    # Layers

    def _layer(self, layer: int, rows: SSAValue) -> SSAValue:
        config = self.config
        has_norm = config.has_norms_before and (layer > 0 or config.has_first_norm)
        normed = self._norm("attn_norm", layer, rows) if has_norm else rows
        attended = self._after("post_attention_norm", layer, self._attention(layer, normed))
        node = self._node("attn_output", layer)
        if config.is_parallel:
            fed = self._after("post_ffw_norm", layer, self._feed_forward(layer, normed))
            return node.emit(AddOp, node.emit(AddOp, rows, attended), fed)
        rows = self._summed("attn_output_norm", layer, node.emit(AddOp, rows, attended))
        if config.memory:
            rows = self._crossed(layer, rows)
        normed = self._norm("ffn_norm", layer, rows) if config.has_norms_before else rows
        fed = self._after("post_ffw_norm", layer, self._feed_forward(layer, normed))
        return self._summed("layer_output_norm", layer, self._node("ffn_down", layer).emit(AddOp, rows, fed))

    def _summed(self, norm: str, layer: int, rows: SSAValue) -> SSAValue:
        """The sums of rows and results, normed where a family does that."""
        return self._norm(norm, layer, rows) if self.config.has_norms_around else rows

    def _after(self, norm: str, layer: int, rows: SSAValue) -> SSAValue:
        """The results of a part of a layer as they are added: normed or scaled where a family does that."""
        if self.config.has_norms_after:
            rows = self._norm(norm, layer, rows)
        return self._scaled(self._node(norm, layer), rows, self.config.residual_scale)

    def _norm(self, name: str, layer: int | None, rows: SSAValue) -> SSAValue:
        """The norm of rows along their last axis."""
        config, node, size = self.config, self._node(name, layer), sizes_of(rows)[-1]
        assert isinstance(size, int)
        scale = self.weights.needed_vector(name, layer, size) + np.float32(config.norm_offset)
        weight = node.constant(scale.astype(np.float32), f"{node.name}.weight")
        if config.norm == "rms":
            return node.emit(RmsNormalizationOp, rows, weight, axis=-1, epsilon=config.epsilon)
        bias = self.weights.vector(name, layer, size, "bias")
        added = None if bias is None else node.constant(bias, f"{node.name}.bias")
        return node.emit(LayerNormalizationOp, rows, weight, added, axis=-1, epsilon=config.epsilon)

    def _product(
        self, name: str, layer: int, rows: SSAValue, size: int, order: np.ndarray | None = None, stored: int = 0
    ) -> SSAValue:
        """Rows times a matrix with `size` results; those of `order` of a stored one with `stored` rows."""
        depth = sizes_of(rows)[-1]
        assert isinstance(depth, int)
        weight = self.weights.matrix(name, layer, (size, depth), order, stored_rows=stored)
        bias = self.weights.vector(name, layer, stored or size, "bias")
        if bias is not None and order is not None:
            bias = bias[order]
        node = self._node(name, layer)
        result = product(node, rows, weight, bias, self.left_bits)
        return self._adapted.added(node, name, layer, rows, result, order if stored else None, stored or size)

    # Attention

    def _crossed(self, layer: int, rows: SSAValue) -> SSAValue:
        """Rows behind attention to the rows of an encoder, whose keys and values are written where they are new."""
        config, node, pages = self.config, self._node("cross_attn", layer), self.memory_pages
        assert pages is not None
        normed = self._norm("cross_attn_norm", layer, rows) if config.has_norms_before else rows
        query = self._product("cross_attn_q", layer, normed, config.query_width)
        query = node.emit(ReshapeOp, query, shape=(self.rows, config.heads, config.head_size))
        memory, table = self.inputs["memory"], self.inputs["memory_table"]
        where = (table, self.inputs["memory_sequences"], self.inputs["memory_positions"])
        kept: list[tuple[SSAValue, SSAValue | None]] = []
        for letter, kind in (("k", "memory_keys"), ("v", "memory_values")):
            new = self._product(f"cross_attn_{letter}", layer, memory, config.key_width)
            new = node.emit(ReshapeOp, new, shape=(sizes_of(memory)[0], config.key_heads, config.head_size))
            kept.append(pages.kept(self._node(f"{kind}.{layer}"), kind, layer, new, where))
        # All of an encoder's rows are seen, from any position that is one of them; that of padding stays negative.
        first = node.emit(MinOp, self.inputs["positions"], node.constant(0, like=self.inputs["positions"]))
        (keys, key_scales), (values, value_scales) = kept
        seen = table, self.inputs["sequences"], first, None, self.inputs["memory_lengths"]
        result = node.emit(PagedAttentionOp, query, keys, values, *seen, key_scales, value_scales, scale=config.scale)
        result = node.emit(ReshapeOp, result, shape=(self.rows, config.query_width))
        attended = self._product("cross_attn_output", layer, result, config.width)
        return self._summed("cross_attn_output_norm", layer, node.emit(AddOp, rows, attended))

    def _attention(self, layer: int, rows: SSAValue) -> SSAValue:
        config, form = self.config, self.config.layers[layer]
        query, key, value = self._heads(layer, rows)
        node = self._node("attn", layer)
        if form.rotation is not None:
            query, key = (self._rotated(node, item, form.rotation) for item in (query, key))
        where = [self.inputs[name] for name in ("table", "sequences", "positions")]
        keys, key_scales = self.pages.kept(self._node(f"keys.{layer}"), "keys", layer, key, where)
        values, value_scales = self.pages.kept(self._node(f"values.{layer}"), "values", layer, value, where)
        properties = {"scale": config.scale, "window": form.window, "softcap": config.score_cap}
        kept = query, keys, values, *where, None, self.inputs.get("lengths"), key_scales, value_scales
        result = node.emit(PagedAttentionOp, *kept, **properties)
        result = node.emit(ReshapeOp, result, shape=(self.rows, config.query_width))
        return self._product("attn_output", layer, result, config.width)

    def _heads(self, layer: int, rows: SSAValue) -> list[SSAValue]:
        """Queries, keys and values [rows, heads, elements], with their norms."""
        config = self.config
        widths = (config.query_width, config.key_width, config.key_width)
        is_joined = self.weights.has("attn_qkv", layer)
        found: list[SSAValue] = []
        for position, (letter, width) in enumerate(zip("qkv", widths, strict=True)):
            if is_joined:
                begin = sum(widths[:position])
                order = np.arange(begin, begin + width)
                value = self._product("attn_qkv", layer, rows, width, order, sum(widths))
            else:
                order = self.weights.row_order(letter)
                value = self._product(f"attn_{letter}", layer, rows, width, order)
            found.append(self._normed_heads(layer, letter, value, width))
        return found

    def _normed_heads(self, layer: int, letter: str, value: SSAValue, width: int) -> SSAValue:
        """Split a row into heads, with a norm of the row or of each head if there is one."""
        config, name, node = self.config, f"attn_{letter}_norm", self._node(f"attn_{letter}", layer)
        size = config.head_size
        scale = None if letter == "v" else self.weights.find(name, layer, "weight")
        is_of_row = scale is not None and self.weights.numbers_of(scale).size != size
        if is_of_row:
            value = self._norm(name, layer, value)
        heads = node.emit(ReshapeOp, value, shape=(self.rows, width // size, size))
        return heads if scale is None or is_of_row else self._norm(name, layer, heads)

    def _rotated(self, node: NodeBuilder, heads: SSAValue, rotation: Rotation) -> SSAValue:
        cosines, sines = self._turn(rotation)
        return rotated(node, heads, cosines, sines)

    def _turn(self, rotation: Rotation) -> tuple[SSAValue, SSAValue]:
        """Cosines and sines of the rows' positions [rows, 1, pairs], once for all layers."""
        if rotation not in self._turns:
            node = self._node("rotation")
            positions = node.emit(ReshapeOp, self.inputs["positions"], shape=(self.rows, 1, 1))
            frequencies = node.constant(np.array(rotation.frequencies, np.float32).reshape(1, 1, -1))
            angles = node.emit(MulOp, node.cast(positions, f32), frequencies)
            cosines, sines = (
                self._scaled(node, node.emit(function, angles), rotation.magnitude) for function in (CosOp, SinOp)
            )
            self._turns[rotation] = (cosines, sines)
        return self._turns[rotation]

    # Feed-forward networks

    def _feed_forward(self, layer: int, rows: SSAValue) -> SSAValue:
        config = self.config
        if config.experts is not None:
            return self._experts(layer, rows, config.experts)
        if not config.is_gated:
            inner = self._activated(layer, self._product("ffn_up", layer, rows, config.hidden))
        elif self.weights.has("ffn_gate", layer):
            gate, up = (self._product(name, layer, rows, config.hidden) for name in ("ffn_gate", "ffn_up"))
            inner = self._gated(layer, gate, up)
        else:
            halves = np.split(np.arange(2 * config.hidden), 2)
            parts = [self._product("ffn_up", layer, rows, config.hidden, half, 2 * config.hidden) for half in halves]
            inner = self._gated(layer, *parts)
        return self._product("ffn_down", layer, inner, config.width)

    def _activated(self, layer: int, value: SSAValue) -> SSAValue:
        operator, properties = ACTIVATIONS[self.config.activation]
        return self._node("ffn_act", layer).emit(operator, value, **properties)

    def _gated(self, layer: int, gate: SSAValue, up: SSAValue) -> SSAValue:
        return self._node("ffn_act", layer).emit(MulOp, self._activated(layer, gate), up)

    def _experts(self, layer: int, rows: SSAValue, experts: ExpertsConfig) -> SSAValue:
        config = self.config
        node = self._node("ffn_gate_inp", layer)
        scores = product(node, rows, self.weights.matrix("ffn_gate_inp", layer, (experts.count, config.width)))
        routing = Routing.of(node, scores, experts.used, experts.is_normalized)

        def expert(number: int, own: SSAValue) -> SSAValue:
            def part(name: str, value: SSAValue, shape: tuple[int, int]) -> SSAValue:
                weight = self.weights.matrix(name, layer, shape, expert=number)
                return product(self._node(f"{name}.{number}", layer), value, weight, None, self.left_bits)

            shape = (experts.hidden, config.width)
            gate, up = (part(name, own, shape) for name in ("ffn_gate_exps", "ffn_up_exps"))
            return part("ffn_down_exps", self._gated(layer, gate, up), (config.width, experts.hidden))

        return mixture(node, rows, routing, expert, config.width)
