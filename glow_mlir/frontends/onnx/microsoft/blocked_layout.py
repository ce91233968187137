"""
onnxruntime's blocked layout of images (domain com.microsoft.nchwc): channels in blocks, [N, C / B, H, W, B].

A tensor in this layout has the shape [N, C, H, W], with C padded to whole blocks. Only operators of the domain depend
on the order of its elements, so we import it as [N, C, H, W] without blocks and without padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
import onnx

from glow_mlir.frontends.onnx.node import Constants
from glow_mlir.runtime.host import llvm_features
from glow_mlir.support.dataclass import dataclass

BLOCKED = "com.microsoft.nchwc"
"""The domain of operators on the blocked layout."""

SMALL, LARGE = 8, 16
"""The sizes of blocks, for processors with vectors of 256 and of 512 bits."""

ALL = 1 << 62
"""All channels: more than any tensor has."""

_ELEMENTWISE = frozenset(
    {"Add", "Sum", "Mul", "Max", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip", "HardSigmoid", "HardSwish", "Elu"}
    | {"Gelu", "QuickGelu", "FastGelu", "Erf", "Identity", "Cast"}
)
"""Operators of other domains that onnxruntime applies to the blocked layout, and that keep channels separate."""


@dataclass(frozen=True)
class BlockedLayout:
    """An analysis of the tensors of a graph that have the blocked layout."""

    block: int
    blocked: frozenset[str]
    """The names of these tensors."""
    channels: Mapping[str, int]
    """Name of a tensor → the number of its leading channels that are needed; the others are padding."""

    def unpacked(self, weights: np.ndarray) -> np.ndarray | None:
        """
        Filters [O, I, H, W], unpacked from blocks of output channels, and of input channels if these fill blocks.

        The result includes padding. `None` if the filters are not in blocks.
        """
        if weights.ndim != 4 or not weights.size or weights.shape[0] % self.block:
            return None
        outputs, inputs, *window = weights.shape
        outer, block = outputs // self.block, self.block
        if inputs % block:
            parts = weights.reshape(outer, inputs, *window, block).transpose(0, 4, 1, 2, 3)
        else:
            split = weights.reshape(outer, inputs // block, *window, block, block)
            parts = split.transpose(0, 5, 1, 4, 2, 3)
        return parts.reshape(weights.shape)


def blocked_layout(nodes: Sequence[onnx.NodeProto], constant: Constants) -> BlockedLayout:
    """Analyze the nodes of a graph; `constant` returns the arrays of initializers."""
    blocked = _blocked(nodes)
    weights = {name: array for name in _weights(nodes) if (array := constant(name)) is not None}
    layout = BlockedLayout(_block(nodes, blocked, weights), blocked, {})
    needs = _Needs()
    for node in nodes:
        _add_needs(node, layout, weights, needs)
    return BlockedLayout(layout.block, blocked, {name: needs.of(name) for name in blocked})


def is_depthwise(weights: Sequence[int], group: int) -> bool:
    """Whether each channel has its own filter."""
    return len(weights) == 4 and weights[1] == 1 and weights[0] == group


def group_of(node: onnx.NodeProto) -> int:
    """The number of groups of a convolution."""
    return _integer(node, "group", 1)


def _blocked(nodes: Sequence[onnx.NodeProto]) -> frozenset[str]:
    """The names of tensors in the blocked layout: results of its operators, and everything computed from them."""
    found: set[str] = set()
    count = -1
    while count < len(found):
        count = len(found)
        for node in nodes:
            if node.op_type != "ReorderOutput" and (node.domain == BLOCKED or not found.isdisjoint(node.input)):
                found.update(filter(None, node.output))
    return frozenset(found)


def _weights(nodes: Sequence[onnx.NodeProto]) -> Iterator[str]:
    return (
        node.input[1] for node in nodes if node.domain == BLOCKED and node.op_type == "Conv" and len(node.input) > 1
    )


def _block(nodes: Sequence[onnx.NodeProto], blocked: frozenset[str], weights: Mapping[str, np.ndarray]) -> int:
    """
    The size of blocks: the only one that the numbers of channels admit, or else that of this processor.

    As in onnxruntime, a file is for one kind of processor, and does not contain the size.
    """
    counts = {node.output[0]: weights[node.input[1]].shape for node in nodes if _has_weights(node, weights)}
    if any(shape[0] % LARGE for shape in counts.values() if shape):
        return SMALL
    for node in nodes:
        if _has_weights(node, weights):
            inputs = weights[node.input[1]].shape[1:2]
            if node.input[0] not in blocked and inputs and inputs[0] >= SMALL and group_of(node) == 1:
                return LARGE  # They would fill a small block.
        elif node.domain == BLOCKED and node.op_type == "ReorderOutput" and node.input:
            outputs = counts.get(node.input[0], (0,))[0]
            if outputs - _integer(node, "channels", outputs) >= SMALL:
                return LARGE
    return LARGE if llvm_features().get("avx512f", False) else SMALL


def _has_weights(node: onnx.NodeProto, weights: Mapping[str, np.ndarray]) -> bool:
    is_conv = node.domain == BLOCKED and node.op_type == "Conv" and len(node.input) > 1
    return is_conv and node.input[1] in weights and bool(node.output)


def _integer(node: onnx.NodeProto, name: str, default: int) -> int:
    """An integer attribute; other types are reported when the node is imported."""
    return next((attribute.i for attribute in node.attribute if attribute.name == name), default)


@dataclass
class _Needs:
    """Classes of tensors with the same channels, and the number of needed channels of each class (union-find)."""

    parents: dict[str, str] = field(default_factory=dict[str, str])
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def root(self, name: str) -> str:
        """The representative of a tensor's class."""
        while (parent := self.parents.get(name, name)) != name:
            name = parent
        return name

    def join(self, names: Sequence[str]) -> None:
        """Merge the classes of tensors that have the same channels."""
        for other in names[1:]:
            one, two = self.root(names[0]), self.root(other)
            if one != two:
                self.parents[two] = one
                self.counts[one] = max(self.counts.get(one, 0), self.counts.pop(two, 0))

    def add(self, name: str, count: int) -> None:
        """Record that `count` channels of a tensor are needed."""
        root = self.root(name)
        self.counts[root] = max(self.counts.get(root, 0), count)

    def of(self, name: str) -> int:
        """The number of needed channels of a tensor; all if nothing is known."""
        return self.counts.get(self.root(name), 0) or ALL


def _add_needs(node: onnx.NodeProto, layout: BlockedLayout, weights: Mapping[str, np.ndarray], needs: _Needs) -> None:
    """Record the channels that a node needs of its operands in the blocked layout."""
    here = [name for name in (*node.input, *node.output) if name in layout.blocked]
    if node.domain != BLOCKED and node.op_type not in _ELEMENTWISE:
        for name in here:
            needs.add(name, ALL)
    elif node.op_type == "ReorderOutput" and node.domain == BLOCKED:
        for name in here:
            needs.add(name, _integer(node, "channels", ALL))
    elif node.op_type != "Conv" or node.domain != BLOCKED:
        needs.join(here)
    else:
        _add_needs_of_conv(node, layout, weights, needs)


def _add_needs_of_conv(
    node: onnx.NodeProto, layout: BlockedLayout, weights: Mapping[str, np.ndarray], needs: _Needs
) -> None:
    filters = layout.unpacked(weights[node.input[1]]) if _has_weights(node, weights) else None
    image = node.input[0] if node.input and node.input[0] in layout.blocked else ""
    results = [name for name in (*node.input[3:4], *node.output) if name in layout.blocked]
    if filters is not None and is_depthwise(filters.shape, group_of(node)):
        needs.join([*filter(None, [image]), *results])
        return
    needs.join(results)
    if filters is None or group_of(node) != 1:
        for name in filter(None, [image, *results]):
            needs.add(name, ALL)
    elif image:
        used = np.flatnonzero(filters.any(axis=(0, 2, 3)))
        needs.add(image, int(used[-1]) + 1 if used.size else 1)
