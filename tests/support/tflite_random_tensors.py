"""Random tensors of TensorFlow Lite, and models of one operator with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tflite_files import OperatorCase, TensorCase, tflite_model

from glow_mlir.support.dataclass import dataclass

INTEGERS = ("int8", "uint8")

Found = (
    tuple[str, list[TensorCase | None], dict[int, Any] | None]
    | tuple[str, list[TensorCase | None], dict[int, Any] | None, int]
)
"""An operator, its tensors with the results last, its options, and the number of results if there are several."""

POSITIVE = ("LOG", "SQRT", "RSQRT", "POW")
"""Operators on floats that are not negative."""


@dataclass(frozen=True)
class SingleOperator:
    """A model of one operator: its bytes and its inputs, whose numbers are from 0 on if it `is_positive`."""

    name: str
    data: bytes
    inputs: Sequence[TensorCase]
    is_positive: bool = False

    def arrays(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Random inputs: floats about 0, truth values, and integers of the whole range or within their bounds."""
        found: list[np.ndarray] = []
        for item in self.inputs:
            dtype = np.dtype(item.dtype)
            if dtype.kind == "f" and item.bounds is not None:
                found.append(generator.uniform(*item.bounds, item.shape).astype(dtype))
            elif dtype.kind == "f":
                numbers = (generator.standard_normal(item.shape) * 2).astype(dtype)
                found.append(np.abs(numbers) if self.is_positive else numbers)
            elif dtype.kind == "b":
                found.append(generator.integers(0, 2, item.shape).astype(dtype))
            else:
                low, high = item.bounds or (np.iinfo(dtype).min, np.iinfo(dtype).max)
                found.append(generator.integers(int(low), int(high), item.shape, dtype, endpoint=True))
        return found


class RandomTensors:
    """Random shapes and tensors."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def whole(self, low: int, high: int) -> int:
        """An integer from `low` to below `high`."""
        return int(self.random.integers(low, high))

    def shape(self, rank: int) -> tuple[int, ...]:
        """A shape of some axes of 1 to 6 elements."""
        return tuple(self.whole(1, 7) for _ in range(rank))

    def tensor(self, shape: Sequence[int], dtype: str) -> TensorCase:
        """A tensor; quantized ones have a random scale and zero point."""
        if dtype not in ("int8", "uint8", "int16"):
            return TensorCase(shape, dtype)
        zero = 0 if dtype == "int16" else self.whole(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
        return TensorCase(shape, dtype, scales=[float(np.float32(self.random.uniform(0.004, 0.3)))], zeros=[zero])

    def alike(self, tensor: TensorCase, shape: Sequence[int]) -> TensorCase:
        """A tensor of another shape with the type, the scale and the zero point of one."""
        return TensorCase(shape, tensor.dtype, scales=tensor.scales, zeros=tensor.zeros)

    def constant(self, array: np.ndarray | Sequence[int]) -> TensorCase:
        """A constant; integers of Python are of i32."""
        found = array if isinstance(array, np.ndarray) else np.array(array, np.int32)
        return TensorCase(found.shape, found.dtype.name, found)


def single_operator(found: Found) -> SingleOperator:
    """The model of an operator; an operand that is `None` is left out."""
    kind, listed, options, count = (*found, 1) if len(found) == 3 else found
    tensors = [item for item in listed if item is not None]
    free = iter(range(len(tensors)))
    numbers = [-1 if item is None else next(free) for item in listed]
    given = [
        number
        for number in numbers[:-count]
        if number >= 0 and tensors[number].values is None and not tensors[number].is_variable
    ]
    inner = ()
    if kind == "UNIDIRECTIONAL_SEQUENCE_LSTM" and tensors[0].dtype == "int8":
        inner = tuple(range(len(tensors), len(tensors) + 5))
        tensors += [*[TensorCase((1,), "int16", scales=[2.0**-12], zeros=[0])] * 4, tensors[numbers[-1]]]
    operator = OperatorCase(kind, numbers[:-count], numbers[-count:], options, intermediates=inner)
    data = tflite_model(tensors, [operator], given, numbers[-count:])
    types = " ".join(dict.fromkeys(item.dtype for item in (*tensors[:2], tensors[numbers[-1]])))
    return SingleOperator(f"{kind} of {types}", data, [tensors[item] for item in given], kind in POSITIVE)
