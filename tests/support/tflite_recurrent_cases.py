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
        return [self.filters(), self.memories(), self.integer_memories()]

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

    def memories(self) -> Iterator[Found]:
        """LSTM: plain, without an input gate, with peepholes, and with a projection."""
        batch, steps, depth, units = self.whole(1, 3), self.whole(1, 7), self.whole(2, 9), self.whole(2, 9)
        for form in ("plain", "coupled", "peepholes", "projection"):
            is_first = bool(self.whole(0, 2))
            shown = 3 if form == "projection" else units
            tensors: list[TensorCase | None] = [
                TensorCase((steps, batch, depth) if is_first else (batch, steps, depth))
            ]
            for size in (depth, shown):
                tensors += [self.constant(self.numbers(units, size)) for _ in range(4)]
            tensors += [self.constant(self.numbers(units)) if form == "peepholes" else None for _ in range(3)]
            tensors += [self.constant(self.numbers(units)) for _ in range(4)]
            if form == "coupled":
                for position in (1, 5, 12):
                    tensors[position] = None
            projection = form == "projection"
            tensors += [self.constant(self.numbers(shown, units)) if projection else None]
            tensors += [self.constant(self.numbers(shown)) if projection else None]
            tensors += [TensorCase((batch, size), is_variable=True) for size in (shown, units)]
            tensors += [None] * 4
            out = TensorCase((steps, batch, shown) if is_first else (batch, steps, shown))
            options = {0: ("b", 4), 1: ("f", 0.7 * self.whole(0, 2)), 2: ("f", 0.0), 3: ("?", is_first)}
            yield "UNIDIRECTIONAL_SEQUENCE_LSTM", [*tensors, out], options

    def integer_memories(self) -> Iterator[Found]:
        """LSTM of int8 with a cell of int16."""
        batch, steps, depth, units = self.whole(1, 3), self.whole(1, 7), self.whole(2, 9), self.whole(2, 9)
        own = self.tensor((batch, steps, depth), "int8")
        kept = TensorCase((batch, units), "int8", scales=[1 / 128], zeros=[self.whole(-9, 9)], is_variable=True)
        for power in (-11, -12):
            tensors: list[TensorCase | None] = [own]
            for size, scale in ((depth, 0.08 / own.scales[0] / 127), (units, 0.01)):
                for _ in range(4):
                    tensors.append(TensorCase((units, size), "int8", self.integers(units, size), [scale], [0]))
            tensors += [None] * 3
            for gate in range(4):
                scale = own.scales[0] * tensors[1 + gate].scales[0]
                bias = self.random.integers(-300, 300, units).astype(np.int32)
                tensors.append(TensorCase((units,), "int32", bias, [scale], [0]))
            cell = TensorCase((batch, units), "int16", scales=[2.0**power], zeros=[0], is_variable=True)
            tensors += [None, None, kept, cell, *[None] * 4]
            out = TensorCase((batch, steps, units), "int8", scales=kept.scales, zeros=kept.zeros)
            options = {0: ("b", 4), 1: ("f", 0.0), 2: ("f", 0.0), 3: ("?", False)}
            yield "UNIDIRECTIONAL_SEQUENCE_LSTM", [*tensors, out], options
