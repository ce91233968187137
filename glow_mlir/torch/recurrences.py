"""Recurrences as PyTorch operators: their computation in PyTorch, shapes and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from glow_mlir.frontends.torch.recurrent import LIBRARY
from glow_mlir.torch.tensors import HOST


def _stepped(
    gates: Tensor, initial: tuple[Tensor, ...], reverse: bool, step: Callable[..., tuple[tuple[Tensor, ...], Tensor]]
) -> list[Tensor]:
    """All states, the last states, the gate sums of all steps, and other states before each step."""
    count = gates.shape[0]
    states, sums, before = [initial[0]] * count, [gates[0]] * count, [initial[-1]] * count
    current = initial
    for position in reversed(range(count)) if reverse else range(count):
        before[position] = current[-1]
        current, sums[position] = step(gates[position], *current)
        states[position] = current[0]
    wide = wide_dtype(gates)
    kept = (torch.stack(sums).to(wide), torch.stack(before).to(wide))
    return [torch.stack(states), *(state.clone() for state in current), *kept]


def wide_dtype(tensor: Tensor) -> torch.dtype:
    """The dtype in which values for the gradient are kept: the tensor's, or a wider one for half floats."""
    return torch.float32 if tensor.dtype in (torch.bfloat16, torch.float16) else tensor.dtype


@custom_op(f"{LIBRARY}::lstm_recurrence", mutates_args=())
def lstm_recurrence(
    gates: Tensor, weights: Tensor, initial_h: Tensor, initial_c: Tensor, reverse: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """
    The steps of a long short-term memory: `glow_high.lstm_recurrence_with_sums`.

    `gates` is [steps, batch, 4·hidden], `weights` [hidden, 4·hidden]: input, output, forget, cell. All states, the last
    state and cell, the sums of the gates, and the cells in front of each step.
    """

    def step(own: Tensor, h: Tensor, c: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        total = own + h @ weights
        enters, leaves, stays, candidate = total.chunk(4, -1)
        new = stays.sigmoid() * c + enters.sigmoid() * candidate.tanh()
        return (leaves.sigmoid() * new.tanh(), new), total

    states, h, c, sums, cells = _stepped(gates, (initial_h, initial_c), reverse, step)
    return states, h, c, sums, cells


@custom_op(f"{LIBRARY}::gru_recurrence", mutates_args=())
def gru_recurrence(
    gates: Tensor, weights: Tensor, initial: Tensor, bias: Tensor, reverse: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """
    The steps of a gated recurrent unit: `glow_high.gru_recurrence_with_sums` with `bias`.

    `gates` is [steps, batch, 3·hidden], `weights` [hidden, 3·hidden]: update, reset, candidate. All states, the last
    one, and the sums of the gates, of the candidate what the reset gate multiplies.
    """

    def step(own: Tensor, h: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        update, reset, factor = (h @ weights).chunk(3, -1)
        at_update, at_reset, at_candidate = own.chunk(3, -1)
        update, reset, factor = update + at_update, reset + at_reset, factor + bias
        z = update.sigmoid()
        new = (1 - z) * (at_candidate + reset.sigmoid() * factor).tanh() + z * h
        return (new,), torch.cat([update, reset, factor], -1)

    states, h, sums, _ = _stepped(gates, (initial,), reverse, step)
    return states, h, sums


@custom_op(f"{LIBRARY}::rnn_recurrence", mutates_args=())
def rnn_recurrence(
    gates: Tensor, weights: Tensor, initial: Tensor, reverse: bool, function: str
) -> tuple[Tensor, Tensor, Tensor]:
    """
    The steps of a simple recurrent network: `glow_high.rnn_recurrence_with_sums`.

    `gates` is [steps, batch, hidden], `weights` [hidden, hidden], `function` `tanh` or `relu`. All states, the last
    one, and the sums.
    """

    def step(own: Tensor, h: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        total = own + h @ weights
        return (getattr(torch, function)(total),), total

    states, h, sums, _ = _stepped(gates, (initial,), reverse, step)
    return states, h, sums


def _fake(states: int, keeps_states: bool) -> Callable[..., tuple[Tensor, ...]]:
    """Return the shape function of a recurrence whose step passes on `states` states."""

    def fake(gates: Tensor, weights: Tensor, initial: Tensor, *_: Any) -> tuple[Tensor, ...]:
        steps, batch, width = gates.shape
        hidden = weights.shape[0]
        ends = (gates.new_empty(batch, hidden) for _ in range(states))
        wide = wide_dtype(gates)
        kept = (gates.new_empty(steps, batch, hidden, dtype=wide),) if keeps_states else ()
        sums = gates.new_empty(steps, batch, width, dtype=wide)
        return gates.new_empty(steps, batch, hidden), *ends, sums, *kept

    return fake


def _register(
    forward: Any, tensors: int, states: int, keeps_states: bool, in_torch: Callable[..., tuple[Tensor, ...]]
) -> None:
    """Register the shapes and gradients of a recurrence on `tensors` tensors; `in_torch` computes it in PyTorch."""
    forward.register_fake(_fake(states, keeps_states))
    name = forward._qualname
    given, saved = 1 + states, 2 + keeps_states
    words = ["bool reverse", "str function"] if "rnn" in name else ["bool reverse"]
    operands = [f"Tensor cotangent_{position}" for position in range(given)]
    operands += [f"Tensor operand_{position}" for position in range(tensors)] + words
    operands += [f"Tensor saved_{position}" for position in range(saved)]
    results = ", ".join(["Tensor"] * tensors)
    torch.library.define(f"{name}_backward", f"({', '.join(operands)}) -> ({results})")

    torch.library.impl(f"{name}_backward", HOST, in_torch)

    def fake_backward(*arguments: Any) -> tuple[Tensor, ...]:
        return tuple(item.new_empty(item.shape) for item in arguments[given : given + tensors])

    torch.library.register_fake(f"{name}_backward", fake_backward)
    library, _, own_name = name.partition("::")

    def setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:tensors], output[0], *output[given:])
        ctx.words = inputs[tensors:]

    def backward(context: Any, *cotangents: Tensor | None) -> tuple[Any, ...]:
        kept = context.saved_tensors
        shapes = (kept[tensors], *kept[2 : 2 + states])
        full = [
            torch.zeros_like(like) if cotangent is None else cotangent
            for cotangent, like in zip(cotangents[:given], shapes, strict=True)
        ]
        operator = getattr(getattr(torch.ops, library), f"{own_name}_backward")
        found = operator(*full, *kept[:tensors], *context.words, *kept[tensors:])
        return *found, *(None for _ in context.words)

    forward.register_autograd(backward, setup_context=setup)


def _swept(
    shape: torch.Size, ends: tuple[Tensor, ...], reverse: bool, step: Callable[..., tuple[Tensor, tuple[Tensor, ...]]]
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The cotangents of the gates of all steps and of the initial states, computed from the last step to the first."""
    found, current = ends[0].new_empty(shape), ends
    for position in range(shape[0]) if reverse else reversed(range(shape[0])):
        found[position], current = step(position, *current)
    return found, current


def _before(states: Tensor, initial: Tensor, reverse: bool) -> Tensor:
    """The states before each step."""
    return torch.cat([states[1:], initial[None]]) if reverse else torch.cat([initial[None], states[:-1]])


def _lstm_backward(*arguments: Any) -> tuple[Tensor, ...]:
    by_states, by_h, by_c, gates, weights, h, _, reverse, states, sums, cells = arguments
    enters, leaves, stays, candidate = sums.chunk(4, -1)
    i, o, f, g = enters.sigmoid(), leaves.sigmoid(), stays.sigmoid(), candidate.tanh()
    new = f * cells + i * g

    def step(position: int, to_h: Tensor, to_c: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        total, squashed = to_h + by_states[position], new[position].tanh()
        cell = to_c + total * o[position] * (1 - squashed**2)
        parts = (
            cell * g[position] * i[position] * (1 - i[position]),
            total * squashed * o[position] * (1 - o[position]),
            cell * cells[position] * f[position] * (1 - f[position]),
            cell * i[position] * (1 - g[position] ** 2),
        )
        own = torch.cat(parts, -1)
        return own, (own @ weights.t(), cell * f[position])

    found, (to_h, to_c) = _swept(gates.shape, (by_h, by_c), reverse, step)
    return found, _by_weights(_before(states, h, reverse), found), to_h, to_c


def _by_weights(states: Tensor, cotangents: Tensor) -> Tensor:
    return states.flatten(0, 1).t() @ cotangents.flatten(0, 1)


def _gru_backward(*arguments: Any) -> tuple[Tensor, ...]:
    by_states, by_h, gates, weights, h, _, reverse, states, sums = arguments
    update, reset, factor = sums.chunk(3, -1)
    z, r, before = update.sigmoid(), reset.sigmoid(), _before(states, h, reverse)
    candidate = (gates.chunk(3, -1)[2] + r * factor).tanh()
    products = torch.empty_like(gates)

    def step(position: int, to_h: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        total = to_h + by_states[position]
        by_update = total * (before[position] - candidate[position]) * z[position] * (1 - z[position])
        inner = total * (1 - z[position]) * (1 - candidate[position] ** 2)
        by_reset = inner * factor[position] * r[position] * (1 - r[position])
        products[position] = torch.cat([by_update, by_reset, inner * r[position]], -1)
        own = torch.cat([by_update, by_reset, inner], -1)
        return own, (total * z[position] + products[position] @ weights.t(),)

    found, (to_h,) = _swept(gates.shape, (by_h,), reverse, step)
    by_bias = products.chunk(3, -1)[2].sum((0, 1))
    return found, _by_weights(before, products), to_h, by_bias


def _rnn_backward(*arguments: Any) -> tuple[Tensor, ...]:
    by_states, by_h, gates, weights, h, reverse, function, states, sums = arguments
    slope = 1 - sums.tanh() ** 2 if function == "tanh" else (sums > 0).to(sums.dtype)

    def step(position: int, to_h: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        own = (to_h + by_states[position]) * slope[position]
        return own, (own @ weights.t(),)

    found, (to_h,) = _swept(gates.shape, (by_h,), reverse, step)
    return found, _by_weights(_before(states, h, reverse), found), to_h


_register(lstm_recurrence, 4, 2, True, _lstm_backward)
_register(gru_recurrence, 4, 1, False, _gru_backward)
_register(rnn_recurrence, 3, 1, False, _rnn_backward)
