"""
Graphs of decoders with caches as inputs and outputs, rewritten to keep keys and values in pages.

Only attention relates the tokens of a sequence, everything else is computed for each token by itself. So rows of
several sequences are one sequence of the graph, and its GroupQueryAttention nodes attend to pages instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.dialects.glow_high.blockwise import BlockwiseMatMulOp
from glow_mlir.dialects.properties import whole_number
from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.frontends.builder.inputs import symbolic_sizes
from glow_mlir.frontends.builder.pages import Pages
from glow_mlir.frontends.onnx.decoder_graph import DecoderGraph
from glow_mlir.frontends.onnx.importer import import_model, open_model
from glow_mlir.frontends.onnx.microsoft.group_query_attention import LAST, PAST_KEY, POSITIONS, TOTAL
from glow_mlir.frontends.onnx.models.inlining import inlined
from glow_mlir.frontends.onnx.models.order import node_name, used_names
from glow_mlir.frontends.onnx.models.sparse import initializers_of
from glow_mlir.frontends.onnx.models.types import declared_sizes
from glow_mlir.frontends.onnx.node import ONNXRUNTIME
from glow_mlir.frontends.onnx.paged_attention import SEQUENCES, TABLE, PagedGroupQueryAttention
from glow_mlir.frontends.onnx.token_rows import COUNT, check_rows
from glow_mlir.support.file_kinds import GENAI
from glow_mlir.support.symbols import Dimension

INPUTS: Mapping[str, Sequence[str]] = {
    "tokens": ("rows",),
    "positions": ("rows",),
    "sequences": ("rows",),
    "table": ("sequences", "pages"),
    "last": ("outputs",),
}
"""Inputs of a rewritten graph → their free dimensions."""

ROWS = ("tokens", "positions", "sequences")
"""The inputs with an element for each token of a call."""

LOGITS = "logits"
"""The output of a rewritten graph: [outputs, vocabulary] of f32."""

ATTENTION = "GroupQueryAttention"


def import_paged(
    graph: DecoderGraph,
    pages: Pages,
    context: int,
    dimensions: Mapping[str, Dimension],
    by_content: bool = True,
    left_bits: int | None = None,
) -> ModuleOp:
    """
    The module of a decoder with `INPUTS`, and `LOGITS` of the rows `last`; keys and values are in `pages`.

    - `context`: the number of tokens of a sequence at most. A graph that asks for the total length, such as one that
      chooses between tables of rotary positions, is told this number.
    - `dimensions`, `by_content`: as in `import_model`.
    - `left_bits`: bits to which rows are rounded in front of quantized weights, by default those of the graph.

    Raises the errors of `import_model`, and `UnsupportedError` for a graph that keeps anything but keys and values of
    GroupQueryAttention.
    """
    model = open_model(graph.path)
    try:
        proto = _Rewriting(inlined(model.proto), graph, context).rewritten()
    except GlowError as error:
        error.file = error.file or model.file
        raise

    def imported(sizes: Mapping[str, Dimension], is_by_content: bool) -> ModuleOp:
        importers = {(ONNXRUNTIME, ATTENTION): PagedGroupQueryAttention(pages, context)}
        return import_model(replace(model, proto=proto), sizes, by_content=is_by_content, importers=importers)

    module = imported(dimensions, by_content)
    known = symbolic_sizes({label: dimensions[label] for label in ("rows", "outputs")})
    checked = module
    if isinstance(known["rows"], int) or (isinstance(known["outputs"], int) and known["outputs"] > 1):
        # Rows of a fixed number look like any other axis.
        checked = imported({**dimensions, **dict.fromkeys(known, (1, COUNT))}, is_by_content=False)
    check_rows(checked, ROWS, "last", LOGITS)
    if left_bits is not None:
        for op in module.walk():
            if isinstance(op, BlockwiseMatMulOp):
                op.properties["left_bits"] = whole_number(left_bits)
    return module


class _Rewriting:
    """The rewriting of one graph without functions."""

    def __init__(self, model: onnx.ModelProto, names: DecoderGraph, context: int) -> None:
        self.proto, self.names, self.context, self.vocabulary = model, names, context, names.vocabulary
        known = initializers_of(model.graph)
        self.inputs = {value.name: value for value in model.graph.input if value.name not in known}
        self.constants: list[onnx.TensorProto] = []

    def _with(self, nodes: Sequence[onnx.NodeProto]) -> onnx.ModelProto:
        """The model with these nodes, our inputs and our output."""
        made = onnx.ModelProto()
        made.CopyFrom(self.proto)
        for entry in ("node", "input", "output", "value_info"):
            made.graph.ClearField(entry)
        made.graph.node.extend(nodes)
        inputs = (helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name, shape in INPUTS.items())
        made.graph.input.extend(inputs)
        shape = ("outputs", self.vocabulary)
        made.graph.output.append(helper.make_tensor_value_info(LOGITS, TensorProto.FLOAT, shape))
        made.graph.initializer.extend(self.constants)
        return made

    def rewritten(self) -> onnx.ModelProto:
        """The rewritten model."""
        names, graph = self.names, self.proto.graph
        self._check_logits()
        nodes = self._needed([_paged(node) for node in graph.node])
        self._check(nodes)
        given = [
            *self._reshaped("tokens", names.tokens, self._shape("row", 1, -1)),
            *self._reshaped("positions", names.positions, self._shape("row", 1, -1)),
            *self._mask(),
        ]
        rows, head = self._head(nodes)
        chosen = _ALL if rows == names.logits else rows
        last = [
            helper.make_node("Gather", [chosen, "last"], [_CHOSEN], "last", axis=1),
            *_renamed(head, {names.logits: _ALL, rows: _CHOSEN}),
            helper.make_node(
                "Reshape", [_ALL if head else _CHOSEN, self._shape("logits", -1, self.vocabulary)], [_FLAT]
            ),
            helper.make_node("Cast", [_FLAT], [LOGITS], to=TensorProto.FLOAT),
        ]
        return self._with([*given, *_renamed(nodes, {names.logits: _ALL}), *last])

    def _head(self, nodes: list[onnx.NodeProto]) -> tuple[str, list[onnx.NodeProto]]:
        """Take the nodes of the head out of all, which need the wanted rows only; returns the rows that they read."""
        constants = set(initializers_of(self.proto.graph))
        for node in nodes:
            # Tables of embeddings that are heads as well are transposed.
            if all(name in constants for name in used_names(node)):
                constants.update(node.output)
        producers = {name: node for node in nodes for name in node.output if name}
        rows, head = self.names.logits, list[onnx.NodeProto]()
        while (node := producers.get(rows)) is not None and node.op_type in _OF_HEADS:
            given = [name for name in node.input if name and name not in constants]
            others = [other for other in nodes if other not in head and rows in used_names(other)]
            if len(given) != 1 or others:
                break
            head.append(node)
            rows = given[0]
        for node in head:
            nodes.remove(node)
        return rows, head[::-1]

    def _shape(self, name: str, *sizes: int) -> str:
        """The name of a constant with a shape."""
        name = f"{_OWN}{name}_shape"
        if all(tensor.name != name for tensor in self.constants):
            self.constants.append(numpy_helper.from_array(np.array(sizes, np.int64), name))
        return name

    def _reshaped(self, given: str, name: str, shape: str) -> list[onnx.NodeProto]:
        """Nodes that make an input of the graph from one of ours, if the graph has it."""
        if name not in self.inputs:
            return []
        kind = self.inputs[name].type.tensor_type.elem_type
        return [
            helper.make_node("Reshape", [given, shape], [f"{name}.i64"], f"{name}/Reshape"),
            helper.make_node("Cast", [f"{name}.i64"], [name], f"{name}/Cast", to=kind),
        ]

    def _mask(self) -> list[onnx.NodeProto]:
        """A node for the mask of attention, of which only the shape is used."""
        name = self.names.mask
        if name not in self.inputs:
            return []
        kind = self.inputs[name].type.tensor_type.elem_type
        value = numpy_helper.from_array(np.ones(1, helper.tensor_dtype_to_np_dtype(kind)))
        shape = self._shape("mask", 1, self.context)
        return [helper.make_node("ConstantOfShape", [shape], [name], f"{name}/ConstantOfShape", value=value)]

    def _needed(self, nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
        """The nodes that logits need."""
        producers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
        pending, needed = [self.names.logits], set[int]()
        while pending:
            index = producers.get(pending.pop())
            if index is not None and index not in needed:
                needed.add(index)
                pending.extend(used_names(nodes[index]))
        return [node for index, node in enumerate(nodes) if index in needed]

    def _check_logits(self) -> None:
        """Raise an error unless the graph has logits of all tokens."""
        name = self.names.logits
        declared = next((value for value in self.proto.graph.output if value.name == name), None)
        if declared is None or self.names.tokens not in self.inputs:
            missing = f"output '{name}'" if declared is None else f"input '{self.names.tokens}'"
            raise ModelError(f"the graph has no {missing}, which {GENAI} names")
        sizes = declared_sizes(declared)
        if len(sizes) == 3 and sizes[1] == 1:
            hint = "build it without prune_lm_head"
            raise UnsupportedError(f"the output '{name}' has one row only, that of the last token", hint=hint)
        if sizes and isinstance(sizes[-1], int) and sizes[-1] != self.vocabulary:
            reason = f"the output '{name}' has {sizes[-1]} columns, and the vocabulary {self.vocabulary} tokens"
            raise ModelError(reason, hint="vocab_size is the number of logits")

    def _check(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Raise `UnsupportedError` for nodes that relate tokens in other ways than `ATTENTION` does."""
        named = {self.names.tokens, self.names.positions, self.names.mask}
        named.update(name for node in nodes for name in node.output)
        if taken := sorted(named & INPUTS.keys()):
            raise UnsupportedError(f"a value of the graph is called '{taken[0]}', as an input of ours")
        others = self.inputs.keys() - {self.names.tokens, self.names.positions}
        found = [(node, name) for node in nodes for name in used_names(node) if name in others]
        # Only the shape of the mask is known. Caches are named first, because they say more of the graph.
        found = [(node, name) for node, name in found if name != self.names.mask or node.op_type != "Shape"]
        for node, name in sorted(found, key=lambda item: item[1] == self.names.mask):
            raise UnsupportedError(f"{node.op_type} reads '{name}', {_ONLY}", node=node_name(node))
        if not any(map(_is_attention, nodes)):
            raise UnsupportedError(f"no node keeps keys and values, {_ONLY}")


_ONLY = f"and only {ATTENTION} is supported as what relates tokens"

_OF_HEADS = ("Add", "Cast", "Div", "MatMul", "MatMulNBits", "Mul", "Sub", "Tanh")
"""Operators of heads, which compute each row of logits from one row."""

_OWN = "paged."
"""The beginning of names of constants and results that are added."""

_ALL, _CHOSEN, _FLAT = (f"{_OWN}{name}" for name in ("logits", "chosen", "flat"))
"""Names of logits with their own axes, of the rows that are wanted, and of logits with two axes."""


def _is_attention(node: onnx.NodeProto) -> bool:
    return (node.domain, node.op_type) == (ONNXRUNTIME, ATTENTION)


def _paged(node: onnx.NodeProto) -> onnx.NodeProto:
    """A node of attention as `PagedGroupQueryAttention` takes it; any other node is unchanged."""
    if not _is_attention(node) or len(node.input) <= PAST_KEY or not node.input[PAST_KEY]:
        return node
    made = onnx.NodeProto()
    made.CopyFrom(node)
    operands = [*node.input, *[""] * (POSITIONS + 1 - len(node.input))]
    for position, name in ((TABLE, "table"), (SEQUENCES, "sequences"), (POSITIONS, "positions")):
        operands[position] = name
    operands[LAST] = operands[TOTAL] = ""
    made.ClearField("input")
    made.input.extend(operands)
    del made.output[1:3]
    return made


def _renamed(nodes: Iterable[onnx.NodeProto], names: Mapping[str, str]) -> list[onnx.NodeProto]:
    """The nodes with other names of some operands and results."""
    found: list[onnx.NodeProto] = []
    for node in nodes:
        made = onnx.NodeProto()
        made.CopyFrom(node)
        for values in (made.input, made.output):
            for position, name in enumerate(values):
                values[position] = names.get(name, name)
        found.append(made)
    return found
