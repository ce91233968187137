"""Random models of one recurrent operator, whose state is kept from call to call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tflite_files import TensorCase
from tflite_random_tensors import Found, RandomTensors


class RecurrentCases(RandomTensors):
    """Layers over time."""

    def families(self) -> list[Iterator[Found]]:
        """All of them."""
        return [self.filters()]

    def numbers(self, *shape: int) -> np.ndarray:
        """Floats about 0."""
        return (self.random.standard_normal(shape) * 0.5).astype(np.float32)

    def integers(self, *shape: int, dtype: str = "int8") -> np.ndarray:
        """Integers of the whole range."""
        limits = np.iinfo(dtype)
        return self.random.integers(limits.min + 1, limits.max + 1, shape).astype(dtype)

    def filters(self) -> Iterator[Found]:
        """Filters of rank 1."""
        batch, depth, units, rank, steps = self.whole(1, 3), self.whole(2, 9), self.whole(1, 6), 2, self.whole(2, 7)
        count = units * rank
        options = {0: ("i", rank), 1: ("b", 0)}
        bias = self.constant(self.numbers(units))
        state = TensorCase((batch, count * steps), is_variable=True)
        features, time = self.constant(self.numbers(count, depth)), self.constant(self.numbers(count, steps))
        operand, out = TensorCase((batch, depth)), TensorCase((batch, units))
        yield "SVDF", [operand, features, time, bias, state, out], options
        weights = [
            TensorCase((count, size), "int8", self.integers(count, size), [0.01], [0]) for size in (depth, steps)
        ]
        for asymmetric in (False, True):
            own = {2: ("?", asymmetric)}
            yield "SVDF", [operand, *weights, bias, state, out], options | own
        operand = self.tensor((batch, depth), "int8")
        scale = float(np.float32(operand.scales[0] * 0.01 * 127 * 127 * depth**0.5 / 32767))
        time = TensorCase((count, steps), "int16", self.integers(count, steps, dtype="int16"), [1e-4], [0])
        kept = TensorCase((batch, count * steps), "int16", scales=[scale], zeros=[0], is_variable=True)
        product = float(np.float32(scale * 1e-4))
        bias = TensorCase((units,), "int32", self.random.integers(-3000, 3000, units).astype(np.int32), [product], [0])
        size = scale * 32767 * 1e-4 * 32767 * (steps * rank) ** 0.5 / 127
        out = TensorCase((batch, units), "int8", scales=[float(np.float32(size * 0.3))], zeros=[-128])
        yield "SVDF", [operand, weights[0], time, bias, kept, out], {0: ("i", rank), 1: ("b", 1)}
