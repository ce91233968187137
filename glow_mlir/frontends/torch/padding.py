"""PyTorch's padding operators, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.frontends.builder.padding import pad_value
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.gradients import gradients
from glow_mlir.frontends.torch.node import TorchNode


def widths_of(pads: Sequence[int], count: int) -> list[tuple[int, int]]:
    """The widths before and after each of `count` axes, from a list that starts with the last axis."""
    widths = [(0, 0)] * count
    for number in range(len(pads) // 2):
        widths[count - 1 - number] = pads[2 * number], pads[2 * number + 1]
    return widths


@torch_operator("constant_pad_nd.default")
def constant_pad(node: TorchNode, value: SSAValue, pads: Sequence[int], fill: float = 0) -> SSAValue:
    """Pad axes, from the last one on, with a constant; negative widths crop."""
    return pad_value(node, value, widths_of(pads, rank_of(value)), "constant", node.tensor(fill))


MODES: Mapping[str, str] = {"reflection": "reflect", "replication": "edge"}
"""Word of an operator → the padding mode."""


def padded(node: TorchNode, value: SSAValue, pads: Sequence[int], mode: str) -> SSAValue:
    """Pad a value with its own elements, which are chosen before negative widths crop."""
    widths = widths_of(pads, rank_of(value))
    for axis, (before, after) in enumerate(widths):
        size = sizes_of(value)[axis]
        if min(before, after) < 0 and mode == "edge" and isinstance(size, int):
            positions = np.arange(-before, size + after).clip(0, size - 1)
            value = node.emit(GatherOp, value, node.constant(positions.astype(np.int64)), axis=axis)
            widths[axis] = 0, 0
    return pad_value(node, value, widths, mode, None)


def _pad(mode: str) -> Callable[..., SSAValue]:
    """The importer of padding that repeats elements."""

    def run(node: TorchNode, value: SSAValue, pads: Sequence[int]) -> SSAValue:
        return padded(node, value, pads, mode)

    return run


def _backward(mode: str) -> Callable[..., SSAValue]:
    """The importer of the gradient of padding."""

    def run(node: TorchNode, gradient: SSAValue, value: SSAValue, pads: Sequence[int]) -> SSAValue:
        (found,) = gradients(node, padded(node, value, pads, mode), gradient, value)
        return found

    return run


for _word, _mode in MODES.items():
    for _axes in (1, 2, 3):
        torch_operator(f"{_word}_pad{_axes}d.default")(_pad(_mode))
        torch_operator(f"{_word}_pad{_axes}d_backward.default")(_backward(_mode))
