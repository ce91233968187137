"""The assumptions of an executable: sizes of free dimensions, and values of inputs that determine shapes."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import named_dtype
from glow_mlir.support.symbols import Dimension, size_from_label


@dataclass(frozen=True)
class InputValue:
    """The value of an input: name, element type, shape, and the bytes of its elements in C order."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    content: bytes

    @staticmethod
    def of(name: str, array: np.ndarray) -> InputValue:
        """The value of an array."""
        return InputValue(name, array.dtype.name, array.shape, array.tobytes())

    def array(self) -> np.ndarray:
        """The value as a read-only array."""
        return np.frombuffer(self.content, named_dtype(self.dtype)).reshape(self.shape)


@dataclass(frozen=True)
class Assumptions:
    """The assumptions of an executable: sizes of free dimensions, and values of inputs that determine shapes."""

    sizes: tuple[tuple[str, Dimension], ...] = ()
    values: tuple[InputValue, ...] = ()

    def arrays(self) -> dict[str, np.ndarray]:
        """Input name → value."""
        return {value.name: value.array() for value in self.values}

    def __str__(self) -> str:
        """A text such as `N=2, shape=[3, 4]`."""
        values = ((value.name, value.array().tolist()) for value in self.values)
        sizes = ((name, f"{size[0]}..{size[1]}" if isinstance(size, tuple) else size) for name, size in self.sizes)
        return ", ".join(f"{name}={known}" for name, known in (*sizes, *values))


def following(labels: set[str], others: Collection[str]) -> frozenset[str]:
    """The labels whose sizes are expressions of the rest of them, and of `others`."""
    known = dict.fromkeys((*labels, *others), 1)
    return frozenset(
        label
        for label in labels
        if size_from_label(label, {other: one for other, one in known.items() if other != label}) is not None
    )
