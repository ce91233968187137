"""Recurrences as single operators, with which the backend replaces PyTorch's recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.dialects.glow_high.recurrence import (
    GruRecurrenceWithSumsOp,
    LstmRecurrenceWithSumsOp,
    Recurrence,
    RnnRecurrenceWithSumsOp,
)
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.glow_high.saved import SavedOp
from glow_mlir.dialects.shapes import rank_of
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode

LIBRARY = "glow_mlir"
"""The PyTorch library of these operators."""


def _with_sums(
    node: TorchNode, operator: type[Recurrence], operands: Sequence[SSAValue], reverse: bool, function: str
) -> tuple[SSAValue, ...]:
    """All states, the last states, and the values saved for the gradient."""
    named = {"activations": ArrayAttr([StringAttr(function)])} if function else {}
    if operator is LstmRecurrenceWithSumsOp:
        return node.emit_all(operator, *operands, None, None, reverse=reverse)
    if operator is GruRecurrenceWithSumsOp:
        return node.emit_all(operator, *operands, None, reverse=reverse)
    return node.emit_all(operator, *operands, None, reverse=reverse, **named)


def _forward(operator: type[Recurrence], count: int) -> Callable[..., Sequence[SSAValue]]:
    """The importer of a recurrence with `count` tensors as operands."""

    def run(node: TorchNode, *arguments: SSAValue | bool | str) -> Sequence[SSAValue]:
        operands = [item for item in arguments[:count] if isinstance(item, SSAValue)]
        function = str(arguments[count + 1]) if len(arguments) > count + 1 else ""
        return _with_sums(node, operator, operands, bool(arguments[count]), function)

    return run


def _backward(operator: type[Recurrence], count: int) -> Callable[..., Sequence[SSAValue]]:
    """
    The importer of the gradient of a recurrence.

    Arguments are the cotangents of all states and of the last ones, the arguments of the forward operator, and its
    saved results, starting with the states.
    """
    given = 1 + operator.STATES

    def run(node: TorchNode, *arguments: SSAValue | bool | str) -> Sequence[SSAValue]:
        values = [item for item in arguments if isinstance(item, SSAValue)]
        cotangents, operands, saved = values[:given], values[given : given + count], values[given + count :]
        words = [item for item in arguments if not isinstance(item, SSAValue)]
        function = str(words[1]) if len(words) > 1 else ""
        results = _with_sums(node, operator, operands, bool(words[0]), function)
        kept = (results[0], *results[given:])
        states, *_ = node.emit_all(SavedOp, [*kept, *saved])
        return node.emit_all(GradientOp, _weighted(node, (states, *results[1:given]), cotangents), None, operands)

    return run


def _weighted(node: TorchNode, values: Sequence[SSAValue], weights: Sequence[SSAValue]) -> SSAValue:
    """The sum of all elements of the products of values and weights."""
    total: SSAValue | None = None
    for value, weight in zip(values, weights, strict=True):
        product = node.emit(MulOp, value, weight)
        own = node.emit(ReduceSumOp, product, axes=tuple(range(rank_of(product))), keepdims=False)
        total = own if total is None else node.emit(AddOp, total, own)
    assert total is not None
    return total


for _name, _operator, _count in (
    ("lstm", LstmRecurrenceWithSumsOp, 4),
    ("gru", GruRecurrenceWithSumsOp, 4),
    ("rnn", RnnRecurrenceWithSumsOp, 3),
):
    torch_operator(f"{LIBRARY}.{_name}_recurrence.default")(_forward(_operator, _count))
    torch_operator(f"{LIBRARY}.{_name}_recurrence_backward.default")(_backward(_operator, _count))
