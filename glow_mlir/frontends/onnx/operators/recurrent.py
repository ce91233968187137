"""ONNX's recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_high.activation_functions import GATE_FUNCTIONS
from glow_mlir.dialects.glow_high.recurrent import DIRECTIONS, GruOp, LstmOp, Recurrent, RnnOp
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.operator_map import ATTRIBUTE_MAPS
from glow_mlir.ir.registry import onnx_operator

GATE_NAMES: dict[str, str] = {name.replace("_", ""): name for name in GATE_FUNCTIONS}
"""ONNX's name of a gate function in lower case → ours."""


def _gate_functions(node: Node, operator: type[Recurrent]) -> dict[str, Attribute]:
    """
    The properties of activation functions and their parameters.

    ONNX lists parameters only for functions that have them, in the order of the functions.
    """
    directions = len(DIRECTIONS[node.text("direction", "forward")])
    names = list(operator.RECURRENCE.FUNCTIONS * directions)
    if node.has("activations"):
        given = node.texts("activations")
        if unknown := [name for name in given if name.lower() not in GATE_NAMES]:
            raise node.unsupported(f"there is no gate function '{unknown[0]}'")
        names = [GATE_NAMES[name.lower()] for name in given]
    properties: dict[str, Attribute] = {"activations": ArrayAttr([StringAttr(name) for name in names])}
    for attribute, field in (("activation_alpha", "alpha"), ("activation_beta", "beta")):
        values = list(node.floats(attribute, ()))
        if not values:
            continue
        defaults: list[float | None] = [getattr(GATE_FUNCTIONS[name], field) for name in names]
        used = [0.0 if default is None else values.pop(0) if values else default for default in defaults]
        properties[f"{field}s"] = to_attribute(used)
    return properties


def _layer(node: Node, operator: type[Recurrent]) -> Sequence[SSAValue]:
    if node.text("direction", "forward") not in DIRECTIONS:
        raise ModelError(f"{node.kind}: direction '{node.text('direction')}' does not exist", node=node.name)
    for position in (1, 2):
        if node.rank(position) != 3:
            hint = "weights are [directions, gates, input], the recurrence is [directions, gates, hidden]"
            reason = f"{node.kind}: operand {position} has the shape {node.shape(position)}"
            raise ModelError(reason, node=node.name, hint=hint)
    functions = _gate_functions(node, operator) if _has_functions(node) else {}
    count = len(operator.get_irdl_definition().operands)
    return node.emit_all(
        operator,
        *(node.optional(position) for position in range(count)),
        clip=node.float("clip", 0.0),
        **ATTRIBUTE_MAPS[node.kind].import_from(node),
        **functions,
    )


def _has_functions(node: Node) -> bool:
    return any(node.has(name) for name in ("activations", "activation_alpha", "activation_beta"))


@onnx_operator("LSTM")
def lstm(node: Node) -> Sequence[SSAValue]:
    """Long short-term memory."""
    return _layer(node, LstmOp)


@onnx_operator("GRU")
def gru(node: Node) -> Sequence[SSAValue]:
    """Gated recurrent units."""
    return _layer(node, GruOp)


@onnx_operator("RNN")
def rnn(node: Node) -> Sequence[SSAValue]:
    """A simple recurrent network."""
    return _layer(node, RnnOp)
