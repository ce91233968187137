"""Initial values of parameters, with the names and formulas of `torch.nn.init`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass

if TYPE_CHECKING:
    from glow_mlir.frontends.onnx.models.fans import Fans


class Initializer(ABC):
    """Initial values of a parameter."""

    @abstractmethod
    def values(self, shape: tuple[int, ...], fans: Fans | None, generator: np.random.Generator) -> np.ndarray:
        """
        Values of a shape, in f64, for a layer with these fans, which vectors and scalars do not have.

        Raises `OptionError` if it needs fans and there are none.
        """


@dataclass(frozen=True)
class Filled(Initializer):
    """The same value everywhere."""

    value: float = 0.0

    def values(self, shape: tuple[int, ...], fans: Fans | None, generator: np.random.Generator) -> np.ndarray:
        return np.full(shape, self.value)


@dataclass(frozen=True)
class Normal(Initializer):
    """Normally distributed values."""

    mean: float = 0.0
    standard_deviation: float = 1.0

    def values(self, shape: tuple[int, ...], fans: Fans | None, generator: np.random.Generator) -> np.ndarray:
        return generator.normal(self.mean, self.standard_deviation, shape)


@dataclass(frozen=True)
class Uniform(Initializer):
    """Values between two numbers, uniformly distributed."""

    low: float = 0.0
    high: float = 1.0

    def values(self, shape: tuple[int, ...], fans: Fans | None, generator: np.random.Generator) -> np.ndarray:
        return generator.uniform(self.low, self.high, shape)


@dataclass(frozen=True)
class Xavier(Initializer):
    """Values whose variance preserves that of forward values and of gradients (Glorot and Bengio, 2010)."""

    gain: float = 1.0
    is_normal: bool = False

    def values(self, shape: tuple[int, ...], fans: Fans | None, generator: np.random.Generator) -> np.ndarray:
        found = _needed(fans, shape)
        return _drawn(self.gain * math.sqrt(2 / (found.inputs + found.outputs)), shape, self.is_normal, generator)


@dataclass(frozen=True)
class He(Initializer):
    """Values whose variance preserves that of values through a ReLU (He et al., 2015)."""

    gain: float = math.sqrt(2)
    is_normal: bool = False

    def values(self, shape: tuple[int, ...], fans: Fans | None, generator: np.random.Generator) -> np.ndarray:
        return _drawn(self.gain / math.sqrt(_needed(fans, shape).inputs), shape, self.is_normal, generator)


@dataclass(frozen=True)
class Orthogonal(Initializer):
    """A matrix with orthonormal rows, or orthonormal columns if there are fewer of them (Saxe et al., 2014)."""

    gain: float = 1.0

    def values(self, shape: tuple[int, ...], fans: Fans | None, generator: np.random.Generator) -> np.ndarray:
        _needed(fans, shape)
        rows, columns = shape[0], math.prod(shape[1:])
        drawn = generator.normal(size=(max(rows, columns), min(rows, columns)))
        factor, triangle = np.linalg.qr(drawn)
        found = factor * np.sign(np.diag(triangle))
        return (self.gain * (found if rows >= columns else found.T)).reshape(shape)


INITIALIZERS: Mapping[str, Callable[[], Initializer]] = {
    "zeros": Filled,
    "ones": partial(Filled, 1.0),
    "normal": partial(Normal, 0.0, 0.02),
    "uniform": partial(Uniform, -0.05, 0.05),
    "xavier_uniform": Xavier,
    "xavier_normal": partial(Xavier, is_normal=True),
    "he_uniform": He,
    "he_normal": partial(He, is_normal=True),
    "orthogonal": Orthogonal,
}
"""Name → initializer."""


def _needed(fans: Fans | None, shape: tuple[int, ...]) -> Fans:
    if fans is None:
        raise OptionError(f"a parameter of shape {list(shape)} has no fans", hint="such as 'zeros' for a bias")
    return fans


def _drawn(deviation: float, shape: tuple[int, ...], is_normal: bool, generator: np.random.Generator) -> np.ndarray:
    """Random numbers with mean 0 and the given standard deviation."""
    if is_normal:
        return generator.normal(0, deviation, shape)
    return generator.uniform(-1, 1, shape) * deviation * math.sqrt(3)
