"""Learning-rate schedules: the factor of the base rate in each step, computed in the step itself."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from glow_mlir.dialects.expressions import Tensor, cos, floor, maximum, minimum, where
from glow_mlir.support.dataclass import dataclass


class Schedule(ABC):
    """A learning-rate factor for each step; factors multiply: `WarmUp(100) * Cosine(1000)`."""

    @abstractmethod
    def factor(self, step: Tensor) -> Tensor:
        """The factor in step `step`, an f64 counted from 0."""

    def __mul__(self, other: Schedule) -> Schedule:
        return Product(self, other)


@dataclass(frozen=True)
class Product(Schedule):
    """The product of two schedules."""

    first: Schedule
    second: Schedule

    def factor(self, step: Tensor) -> Tensor:
        return self.first.factor(step) * self.second.factor(step)


@dataclass(frozen=True)
class Constant(Schedule):
    """A constant factor of 1."""

    def factor(self, step: Tensor) -> Tensor:
        return step * 0.0 + 1.0


@dataclass(frozen=True)
class WarmUp(Schedule):
    """From 1/`steps` to 1 in `steps` steps, linearly, then 1."""

    steps: int

    def factor(self, step: Tensor) -> Tensor:
        return minimum((step + 1.0) / float(self.steps), 1.0)


@dataclass(frozen=True)
class Linear(Schedule):
    """From 1 to `end` in `steps` steps, linearly, then `end`."""

    steps: int
    end: float = 0.0

    def factor(self, step: Tensor) -> Tensor:
        return 1.0 - minimum(step / float(self.steps), 1.0) * (1.0 - self.end)


@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a cosine wave from 1 to `end` in `steps` steps, then `end` (Loshchilov and Hutter, 2016)."""

    steps: int
    end: float = 0.0

    def factor(self, step: Tensor) -> Tensor:
        angle = minimum(step / float(self.steps), 1.0) * math.pi
        return (cos(angle) + 1.0) * ((1.0 - self.end) / 2) + self.end


@dataclass(frozen=True)
class StepDecay(Schedule):
    """`gamma` to the power of the number of completed periods of `every` steps."""

    every: int
    gamma: float = 0.1

    def factor(self, step: Tensor) -> Tensor:
        return self.gamma ** floor(step / float(self.every))


@dataclass(frozen=True)
class Exponential(Schedule):
    """`gamma` to the power of the number of completed steps."""

    gamma: float

    def factor(self, step: Tensor) -> Tensor:
        return self.gamma**step


@dataclass(frozen=True)
class Polynomial(Schedule):
    """From 1 to 0 in `steps` steps: the remaining fraction to the power of `power`."""

    steps: int
    power: float = 1.0

    def factor(self, step: Tensor) -> Tensor:
        return maximum(1.0 - step / float(self.steps), 0.0) ** self.power


@dataclass(frozen=True)
class InverseRoot(Schedule):
    """1 up to step `steps`, then the square root of `steps` / step (Vaswani et al., 2017, with `WarmUp`)."""

    steps: int

    def factor(self, step: Tensor) -> Tensor:
        count = maximum(step + 1.0, float(self.steps))
        return where(count > float(self.steps), (float(self.steps) / count) ** 0.5, 1.0)
