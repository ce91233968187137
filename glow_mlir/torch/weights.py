"""Parameters and buffers that are constants of a compilation, and how their changes are noticed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from glow_mlir.frontends.torch.graph_facts import changed_inputs, used_names
from glow_mlir.frontends.torch.traced_graph import TracedGraph, TracedTensor

Stamp = tuple[int, ...]
"""Versions and addresses of tensors: another one says that one of them has changed."""


class Weights:
    """
    The inputs of a graph that are parameters or buffers which it does not change.

    PyTorch counts the changes of a tensor, but for those through `.data`, and through arrays that share its memory.
    """

    def __init__(self, graph: TracedGraph, static: Sequence[int], inputs: Sequence[Any]) -> None:
        """`static` are the places of parameters and buffers among the `inputs`."""
        read, changed = used_names(graph), changed_inputs(graph)
        self.names: dict[str, int] = {}
        """Input → its place."""
        for place in static:
            item, given = graph.inputs[place], inputs[place]
            is_kept = isinstance(item.value, TracedTensor) and isinstance(given, torch.Tensor)
            # Tensors of inference mode have no count of changes.
            if is_kept and item.name in read and item.name not in changed and not given.is_inference():
                self.names[item.name] = place
        self._places = tuple(self.names.values())

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._places)

    def stamp(self, inputs: Sequence[Any]) -> Stamp:
        """What they are at this moment."""
        places = self._places
        return (*[inputs[place]._version for place in places], *[inputs[place].data_ptr() for place in places])

    def changed(self, before: Stamp, after: Stamp) -> list[str]:
        """Those whose stamps differ."""
        count = len(self._places)
        return [
            name
            for number, name in enumerate(self.names)
            if (before[number], before[count + number]) != (after[number], after[count + number])
        ]
