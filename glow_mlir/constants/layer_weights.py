"""
Weights of equal layers: a placeholder for the weight of each layer while one layer is compiled for all of them.

`collapse-layers` replaces the weights of the layers that it keeps, and `expand-layers` puts the arrays back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np

from glow_mlir.constants.deferred import Deferred
from glow_mlir.errors import LayersDifferError
from glow_mlir.support.dataclass import dataclass

Answer = TypeVar("Answer", bound=Hashable)


@dataclass(frozen=True)
class LayerTable:
    """The arrays of one weight in all layers of a run, of one shape and type, with the names of their constants."""

    run: str
    """The name of the run."""
    arrays: tuple[Deferred, ...]
    names: tuple[str, ...]

    @cached_property
    def digest(self) -> str:
        """A digest of the run and of all arrays: weights of two runs may be equal."""
        state = hashlib.sha256(" ".join([*(array.digest for array in self.arrays), self.run]).encode())
        return state.hexdigest()[:32]


class LayerWeights(Deferred):
    """
    The weight of layer number `layer` in a table, whose elements nobody may read: the code of this layer is also that
    of the other ones.
    """

    def __init__(self, table: LayerTable, layer: int) -> None:
        self.table, self.layer = table, layer
        self.shape, self.dtype = table.arrays[layer].shape, table.arrays[layer].dtype

    @property
    def recipe(self) -> str:
        return f"layer {self.layer} {self.table.digest}"

    @cached_property
    def is_per_layer(self) -> bool:
        return True

    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        raise LayersDifferError(f"the elements of '{self.table.names[self.layer]}' differ between layers")

    def separable(self, axis: int) -> bool:
        return self.table.arrays[self.layer].separable(axis)


def replaced(array: Deferred, change: Callable[[LayerWeights], Deferred]) -> Deferred:
    """An array computed in the same way, with `change` applied to the weights of layers."""
    if not array.is_per_layer:
        return array
    if isinstance(array, LayerWeights):
        return change(array)
    return array.with_sources([replaced(source, change) for source in array.sources])


def of_later_layer(array: Deferred, count: int) -> Deferred:
    """The array that the layer `count` layers later has in place of this one; raises `IndexError` if there is none."""
    return replaced(array, lambda weights: LayerWeights(weights.table, weights.layer + count))


def resolved(array: Deferred, count: int = 0) -> Deferred:
    """The array that the layer `count` layers later has in place of this one, with the elements of that layer."""
    return replaced(array, lambda weights: weights.table.arrays[weights.layer + count])


def leaves(array: Deferred) -> Iterator[LayerWeights]:
    """The weights of layers that an array is computed from."""
    if isinstance(array, LayerWeights):
        yield array
    elif array.is_per_layer:
        for source in array.sources:
            yield from leaves(source)


def of_all_layers(array: Deferred) -> Sequence[Deferred]:
    """The arrays that layers have in place of this one, with their elements; the array itself if it is of no layer."""
    if not array.is_per_layer:
        return [array]
    found = list(leaves(array))
    first = min(weights.layer for weights in found)
    last = min(len(weights.table.arrays) - weights.layer for weights in found)
    return [resolved(array, count) for count in range(-first, last)]


def agreed(array: Deferred, ask: Callable[[np.ndarray], Answer]) -> Answer:
    """
    The answer of `ask` about the elements of an array.

    Raises `LayersDifferError` for an array whose answers differ between layers.
    """
    answers = {ask(one.array()) for one in of_all_layers(array)}
    if len(answers) > 1:
        raise LayersDifferError("a pass decides by elements that differ between layers")
    return answers.pop()
