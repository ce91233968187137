"""Parameters and buffers that are constants of a compilation, and the detection of their changes."""

from __future__ import annotations

import ctypes
import math
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from glow_mlir.errors import ExecutionError
from glow_mlir.frontends.torch.graph_signature import changed_inputs, used_names
from glow_mlir.frontends.torch.traced_graph import TracedGraph, TracedTensor
from glow_mlir.support.dataclass import dataclass
from glow_mlir.torch.pointer_call import PointerCall
from glow_mlir.torch.safety_net import Call
from glow_mlir.torch.tensors import HOST, array_of

Compile = Callable[[Mapping[str, np.ndarray], frozenset[str]], Call]
"""Compiles a graph, given constant arrays by name, and the names of weights that are state instead."""

PATIENCE = 8
"""
The number of consecutive calls with unchanged weights, after a change, before weights become constants again; it grows
eightfold after each further change.
"""

FEW_INSTANCES = 8
"""The number of instances of a module that share a graph and may have constant weights; each needs a compilation."""


def _count_fused_step(optimizer: Optimizer, *_: object) -> None:
    """Count the changes of a fused step, which PyTorch does not count."""
    for group in optimizer.param_groups:
        if group.get("fused"):
            torch.autograd.graph.increment_version([item for item in group["params"] if item.grad is not None])


register_optimizer_step_post_hook(_count_fused_step)

SAMPLES = 16
"""The number of words of a weight that each call compares, spread over it."""

_BASE = 4096
"""The first address that a process may use."""

_WORDS: np.ndarray = np.frombuffer(cast("Any", (ctypes.c_uint32 * (1 << 45)).from_address(_BASE)), np.uint32)
"""The address space of the process, from `_BASE` on, in words of 4 bytes; only words of living tensors are read."""

_NOTHING = np.zeros(1, np.uint32)
"""What is read of a weight of less than a word."""


@dataclass(frozen=True, eq=False)
class Stamp:
    """The state of weights: for each its version counter, its address, a weak reference to it, and some words."""

    tensors: tuple[tuple[int, int, Callable[[], Any]], ...]
    positions: np.ndarray
    """[weights, `SAMPLES`]: the positions of words in memory."""
    words: np.ndarray
    """[weights, `SAMPLES`]: their contents."""

    @cached_property
    def content(self) -> bytes:
        """The words in order."""
        return self.words.tobytes()

    def is_in_memory(self) -> bool:
        """Whether the words are still those in memory; the weights have to be alive, at the same addresses."""
        return _WORDS.take(self.positions).tobytes() == self.content


def _is_countable(value: Any) -> bool:
    """Whether a value is a dense tensor in host memory, with a version counter."""
    if not isinstance(value, torch.Tensor) or value.is_inference():  # Those of inference mode have none.
        return False
    return value.device.type == HOST and value.layout is torch.strided and not value.is_mkldnn


def _stamp(tensors: Sequence[Any]) -> Stamp:
    """The present state of weights."""
    positions = np.stack([_sampled(tensor) for tensor in tensors])
    states = tuple((tensor._version, tensor.data_ptr(), weakref.ref(tensor)) for tensor in tensors)
    return Stamp(states, positions, _WORDS.take(positions))


def _sampled(tensor: Any) -> np.ndarray[Any, Any]:
    """The positions in memory of the words of a tensor that are compared; raises `ExecutionError` if it was freed."""
    width, first = tensor.element_size(), tensor.data_ptr() - _BASE
    sizes, strides = tensor.shape, tensor.stride()
    extent = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) if tensor.numel() else 0
    begin, end = -(-first // 4), (first + extent * width) // 4
    if (tensor.storage_offset() + extent) * width > tensor.untyped_storage().nbytes():
        raise ExecutionError(f"the memory of a weight of the shape {tuple(sizes)} was freed")
    if end <= begin:
        return np.full(SAMPLES, (_NOTHING.ctypes.data - _BASE) // 4)
    if extent == tensor.numel():
        return np.linspace(begin, end - 1, SAMPLES, dtype=np.int64)
    chosen = np.unravel_index(np.linspace(0, tensor.numel() - 1, SAMPLES, dtype=np.int64), sizes)
    offsets = sum(indices * stride for indices, stride in zip(chosen, strides, strict=True))
    return np.clip((first + np.asarray(offsets, np.int64) * width) // 4, begin, end - 1)


class Weights:
    """
    The inputs of a graph that are parameters or buffers, and that the graph does not change.

    PyTorch counts the changes of a tensor, except those through `.data` or through arrays that share its memory. Of
    these, a call sees the ones that change one of a few words of each weight.
    """

    def __init__(self, graph: TracedGraph, static: Sequence[int], inputs: Sequence[Any]) -> None:
        """`static` are the positions of parameters and buffers among the `inputs`."""
        read, changed = used_names(graph), changed_inputs(graph)
        self.names: dict[str, int] = {}
        """Input → its position."""
        for position in static:
            item, given = graph.inputs[position], inputs[position]
            is_kept = isinstance(item.value, TracedTensor) and item.name in read and item.name not in changed
            if is_kept and _is_countable(given):
                self.names[item.name] = position
        self._positions = tuple(self.names.values())

    def __bool__(self) -> bool:
        """Whether there are any weights."""
        return bool(self._positions)

    def stamp(self, inputs: Sequence[Any]) -> Stamp:
        """The present state of the weights."""
        return _stamp([inputs[position] for position in self._positions])

    def are(self, stamp: Stamp, inputs: Sequence[Any]) -> bool:
        """Whether the weights are unchanged since the stamp."""
        for position, (version, address, same) in zip(self._positions, stamp.tensors, strict=True):
            tensor = inputs[position]
            if tensor._version != version or tensor.data_ptr() != address or same() is not tensor:
                return False
        return stamp.is_in_memory()

    def identity(self, inputs: Sequence[Any]) -> tuple[int, ...]:
        """A key that identifies the weights of one module instance."""
        return tuple([id(inputs[position]) for position in self._positions])

    def changed(self, before: Stamp, after: Stamp) -> list[str]:
        """The weights whose stamps differ."""
        is_same = (before.positions == after.positions).all(1) & (before.words == after.words).all(1)
        pairs = zip(before.tensors, after.tensors, strict=True)
        are_same = [one[:2] == other[:2] and one[2]() is other[2]() for one, other in pairs]
        return [name for name, *same in zip(self.names, is_same, are_same, strict=True) if not all(same)]

    def arrays(self, inputs: Sequence[Any]) -> dict[str, np.ndarray]:
        """Input → its elements, which share memory with the tensor."""
        return {name: array_of(inputs[position]) for name, position in self.names.items()}


class WeightedCall:
    """
    Call a graph whose weights are constants of the compilation until one of them changes.

    Then the weights are state, packed again after each change, until they stay unchanged for a while. Reasons for
    further compilations are added to `reasons`.
    """

    def __init__(
        self,
        weights: Weights,
        inputs: Sequence[Any],
        compile_: Compile,
        reasons: list[str],
        patience: float = PATIENCE,
        begins_as_state: bool = False,
    ) -> None:
        """
        `patience` is the number of calls with unchanged state weights before these become constants.

        Weights with `begins_as_state` share the code of all others with it, and are only packed.
        """
        self._weights = weights
        self._compile = compile_
        self._reasons = reasons
        self._lock = threading.Lock()
        self._stamp = weights.stamp(inputs)
        """The stamp of the weights as packed in the state."""
        self._constant: tuple[Stamp, Call] | None = None
        """The stamp of constant weights, and the call compiled for them."""
        self._with_state: Call | None = None
        self._unchanged = 0
        """The number of consecutive calls with unchanged weights since they became state."""
        self._patience = patience
        if begins_as_state:
            self._use_state(inputs)
        else:
            self._constant = self._stamp, compile_(weights.arrays(inputs), frozenset())

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """The outputs of the graph."""
        constant = self._constant
        if constant is not None and self._weights.are(constant[0], inputs):
            return constant[1](inputs)
        with self._lock:
            return self._behind_change(inputs)(inputs)

    @property
    def is_alive(self) -> bool:
        """Whether all weights of the last call still exist."""
        return all(weight() is not None for _, _, weight in self._stamp.tensors)

    def _behind_change(self, inputs: Sequence[Any]) -> Call:
        """The call for weights that changed since they became constants."""
        weights, stamp, constant = self._weights, self._weights.stamp(inputs), self._constant
        if constant is not None:
            if weights.are(constant[0], inputs):  # Another thread was faster.
                return constant[1]
            self._reasons.append(f"{len(weights.changed(constant[0], stamp))} weights changed")
            self._use_state(inputs)
            self._constant = None
        elif changed := weights.changed(self._stamp, stamp):
            self._tell(changed, inputs)
        else:
            self._unchanged += 1
            if self._unchanged >= self._patience:
                return self._rested(stamp, inputs)
        self._stamp = stamp
        assert self._with_state is not None
        return self._with_state

    def _use_state(self, inputs: Sequence[Any]) -> None:
        """Make weights state."""
        names = list(self._weights.names)
        self._with_state = self._with_state or self._compile({}, frozenset(names))
        self._tell(names, inputs)

    def _rested(self, stamp: Stamp, inputs: Sequence[Any]) -> Call:
        """Make weights constants again."""
        self._reasons.append(f"weights rested for {self._patience} calls")
        self._patience *= 8
        call = self._compile(self._weights.arrays(inputs), frozenset())
        self._constant = stamp, call
        self._with_state = None
        return call

    def _tell(self, names: Sequence[str], inputs: Sequence[Any]) -> None:
        """Notify the code that packs weights of changed ones."""
        self._unchanged = 0
        if isinstance(self._with_state, PointerCall):
            self._with_state.changed({name: inputs[self._weights.names[name]] for name in names})


class InstancedCall:
    """
    Call a graph shared by several instances of a module, such as equal layers that are compiled separately.

    Each instance has its own weights, packed once. `compile_` and `reasons` are as in `WeightedCall`.
    """

    def __init__(
        self,
        weights: Weights,
        inputs: Sequence[Any],
        compile_: Compile,
        reasons: list[str],
    ) -> None:
        self._weights = weights
        self._compile = compile_
        self._reasons = reasons
        self._lock = threading.Lock()
        self._calls = {weights.identity(inputs): WeightedCall(weights, inputs, compile_, reasons)}

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """The outputs of the graph."""
        identity = self._weights.identity(inputs)
        call = self._calls.get(identity)
        if call is None:
            with self._lock:
                call = self._calls.get(identity) or self._another(identity, inputs)
        return call(inputs)

    def _another(self, identity: tuple[int, ...], inputs: Sequence[Any]) -> WeightedCall:
        """The call for new weights; it replaces calls whose weights are gone."""
        gone = [known for known, call in self._calls.items() if not call.is_alive]
        calls = [self._calls.pop(known) for known in gone]
        if calls:
            call = calls[0]
        else:
            self._reasons.append("another instance")
            patience = PATIENCE * 8 if len(self._calls) < FEW_INSTANCES else math.inf
            call = WeightedCall(
                self._weights, inputs, self._compile, self._reasons, patience=patience, begins_as_state=True
            )
        self._calls[identity] = call
        return call
