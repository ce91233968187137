"""
PyTorch's recurrent layers as recurrences, which remain whole operators.

PyTorch would decompose them into the operators of every step. One matrix product computes the contributions of inputs
and biases to the gates of all steps. Gates are in ONNX's order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, fx
from torch._ops import OpOverload
from torch.nn.functional import dropout as dropped

from glow_mlir.torch.recurrences import gru_recurrence, lstm_recurrence, rnn_recurrence

LSTM_ORDER, GRU_ORDER = (0, 3, 1, 2), (1, 0, 2)
"""Positions of ONNX's gates among PyTorch's: input, output, forget, cell; update, reset, candidate."""


def _ordered(weight: Tensor, order: Sequence[int]) -> Tensor:
    """The gates of a weight in another order."""
    parts = weight.chunk(len(order), 0)
    return torch.cat([parts[position] for position in order], 0)


def _lstm_steps(x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor], reverse: bool) -> list[Tensor]:
    """One direction of a layer: all states, and the last ones."""
    by_input, by_state, *biases = (_ordered(weight, LSTM_ORDER) for weight in weights)
    gates = torch.nn.functional.linear(x, by_input, biases[0] + biases[1] if biases else None)
    h, c = (state.to(gates.dtype) for state in states)
    return list(lstm_recurrence(gates, by_state.t().to(gates.dtype), h, c, reverse)[:3])


def _gru_steps(x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor], reverse: bool) -> list[Tensor]:
    by_input, by_state, *biases = (_ordered(weight, GRU_ORDER) for weight in weights)
    hidden = by_state.shape[1]
    bias = x.new_zeros(hidden)
    added: Tensor | None = None
    if biases:
        bias = biases[1][2 * hidden :]
        added = biases[0] + torch.cat([biases[1][: 2 * hidden], torch.zeros_like(bias)])
    gates = torch.nn.functional.linear(x, by_input, added)
    h, bias = states[0].to(gates.dtype), bias.to(gates.dtype)
    return list(gru_recurrence(gates, by_state.t().to(gates.dtype), h, bias, reverse)[:2])


def _rnn_steps(function: str) -> Callable[..., list[Tensor]]:
    def steps(x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor], reverse: bool) -> list[Tensor]:
        by_input, by_state, *biases = weights
        gates = torch.nn.functional.linear(x, by_input, biases[0] + biases[1] if biases else None)
        h = states[0].to(gates.dtype)
        return list(rnn_recurrence(gates, by_state.t().to(gates.dtype), h, reverse, function)[:2])

    return steps


def _in_own_types(steps: Callable[..., list[Tensor]], x: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    """Apply `_layers` without the effect of autocast."""
    with torch.autocast(x.device.type, enabled=False):
        return _layers(steps, x, *rest)


def _layers(
    steps: Callable[..., list[Tensor]],
    x: Tensor,
    initial: Sequence[Tensor],
    weights: Sequence[Tensor],
    has_biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """All layers and directions: the states of the last layer, and the last states of all."""
    directions, each = 2 if bidirectional else 1, 4 if has_biases else 2
    value = x.transpose(0, 1) if batch_first else x
    last: list[list[Tensor]] = []
    for layer in range(layers):
        found: list[Tensor] = []
        for direction in range(directions):
            number = layer * directions + direction
            own = weights[number * each : (number + 1) * each]
            states, *ends = steps(value, [state[number] for state in initial], own, direction == 1)
            found.append(states)
            last.append(ends)
        value = torch.cat(found, -1) if directions > 1 else found[0]
        if dropout and train and layer + 1 < layers:
            value = dropped(value, dropout, True)
    result = value.transpose(0, 1) if batch_first else value
    return result, *(torch.stack(ends) for ends in zip(*last, strict=True))


def lstm(x: Tensor, initial: Sequence[Tensor], weights: Sequence[Tensor], *rest: Any) -> tuple[Tensor, ...]:
    """`torch.lstm` without packed sequences and projections."""
    return _in_own_types(_lstm_steps, x, initial, weights, *rest)


def gru(x: Tensor, initial: Tensor, weights: Sequence[Tensor], *rest: Any) -> tuple[Tensor, ...]:
    """`torch.gru` without packed sequences."""
    return _in_own_types(_gru_steps, x, [initial], weights, *rest)


def rnn_tanh(x: Tensor, initial: Tensor, weights: Sequence[Tensor], *rest: Any) -> tuple[Tensor, ...]:
    """`torch.rnn_tanh` without packed sequences."""
    return _in_own_types(_rnn_steps("tanh"), x, [initial], weights, *rest)


def rnn_relu(x: Tensor, initial: Tensor, weights: Sequence[Tensor], *rest: Any) -> tuple[Tensor, ...]:
    """`torch.rnn_relu` without packed sequences."""
    return _in_own_types(_rnn_steps("relu"), x, [initial], weights, *rest)


LAYERS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "gru": gru,
    "lstm": lstm,
    "rnn_relu": rnn_relu,
    "rnn_tanh": rnn_tanh,
}
"""PyTorch's name of a function → the same function built from recurrences."""

ARGUMENTS = 9
"""The number of arguments without packed sequences."""


def put_recurrences(module: fx.GraphModule) -> None:
    """Replace the recurrent layers of a graph by recurrences, where supported."""
    found = False
    for node in module.graph.nodes:
        name = _name_of(node.target)
        if node.op == "call_function" and name in LAYERS and len(node.args) == ARGUMENTS and _is_plain(node, name):
            node.target = LAYERS[name]
            found = True
    if found:
        module.recompile()


def _name_of(target: Any) -> str:
    if isinstance(target, OpOverload):
        name = str(cast("object", target)).removeprefix("aten.")
        return name.removesuffix(".input") if name.endswith(".input") else ""
    return str(getattr(target, "__name__", "")) if callable(target) else ""


def _is_plain(node: fx.Node, name: str) -> bool:
    """Whether sequences are not packed (weights are then the third argument), and states are not projected."""
    weights, has_biases = node.args[2], node.args[3]
    if not isinstance(weights, list | tuple) or not isinstance(has_biases, bool):
        return False
    directions = 2 if node.args[7] else 1
    layers = node.args[4]
    return isinstance(layers, int) and len(weights) == layers * directions * (4 if has_biases else 2)
