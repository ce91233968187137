"""Optimizers as formulas: the update of a parameter and of its optimizer state from its gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import ClassVar, Self

from glow_mlir.dialects.expressions import Tensor, equal, maximum, sqrt, where
from glow_mlir.dialects.glow_high.reductions import ReduceL2Op
from glow_mlir.errors import OptionError
from glow_mlir.frontends.builder.emission import over_all
from glow_mlir.frontends.builder.formulas import Formulas, like
from glow_mlir.support.dataclass import dataclass
from glow_mlir.training.schedules import Constant, Schedule


@dataclass(frozen=True)
class Step:
    """The values shared by all parameters in a step: its number from 1 and the learning rate, both f64 scalars."""

    number: Tensor
    rate: Tensor
    formulas: Formulas


OTHER_NAMES = {
    "lr": "it is called learning_rate",
    "betas": "they are called beta1 and beta2",
    "eps": "it is called epsilon",
}
"""PyTorch's names of optimizer settings, and hints for them."""

Updated = tuple[Tensor, Mapping[str, Tensor]]
"""A parameter, and its optimizer state by name, after a step."""


@dataclass(frozen=True)
class Optimizer(ABC):
    """
    The update rule of parameters.

    `weight_decay` adds that fraction of a parameter to its gradient unless a class documents otherwise. `clip_norm`
    scales all gradients so that their joint norm does not exceed it; `clip_value` limits each gradient element to ± its
    value.
    """

    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: Schedule = Constant()
    clip_norm: float | None = None
    clip_value: float | None = None

    def __new__(cls, *values: object, **given: object) -> Self:
        """Raises `OptionError` for an unknown keyword, such as `lr`."""
        known = [field.name for field in fields(cls)]
        if unknown := [name for name in given if name not in known]:
            listed = f"{cls.__name__} takes {', '.join(known)}"
            hint = OTHER_NAMES.get(unknown[0], listed)
            raise OptionError(f"{cls.__name__} takes no '{unknown[0]}'", hint=hint)
        return super().__new__(cls)

    KEPT: ClassVar[Mapping[str, float]] = {}
    """The optimizer state of each parameter, in its shape, and the initial values."""

    def kept(self) -> Mapping[str, float]:
        """The optimizer state of each parameter, and its initial values."""
        return self.KEPT

    @abstractmethod
    def updated(self, w: Tensor, g: Tensor, kept: Mapping[str, Tensor], step: Step) -> Updated:
        """A parameter and its optimizer state after a step with gradient `g`."""

    def decayed(self, w: Tensor, g: Tensor) -> Tensor:
        """The gradient of the loss plus half of `weight_decay` times the squared parameters."""
        return g + w * self.weight_decay if self.weight_decay else g


@dataclass(frozen=True)
class SGD(Optimizer):
    """Stochastic gradient descent with `momentum`, also Nesterov's (as `torch.optim.SGD`)."""

    momentum: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False

    def kept(self) -> Mapping[str, float]:
        return {"momentum": 0.0} if self.momentum else {}

    def updated(self, w: Tensor, g: Tensor, kept: Mapping[str, Tensor], step: Step) -> Updated:
        g, rate = self.decayed(w, g), like(step.rate, w)
        if not self.momentum:
            return w - rate * g, {}
        added = g
        if self.dampening:  # The first gradient is not dampened.
            added = g * like(where(equal(step.number, 1.0), 1.0, step.number * 0.0 + (1.0 - self.dampening)), w)
        momentum = step.formulas.kept(kept["momentum"] * self.momentum + added)
        direction = g + momentum * self.momentum if self.nesterov else momentum
        return w - rate * direction, {"momentum": momentum}


@dataclass(frozen=True)
class Adam(Optimizer):
    """
    Adaptive moment estimation (Kingma and Ba, 2014), including the `weight_decay` of `torch.optim.Adam`.

    With `amsgrad`, the largest second moment so far replaces the present one.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    amsgrad: bool = False

    def kept(self) -> Mapping[str, float]:
        return {"moment1": 0.0, "moment2": 0.0} | ({"largest_moment2": 0.0} if self.amsgrad else {})

    def updated(self, w: Tensor, g: Tensor, kept: Mapping[str, Tensor], step: Step) -> Updated:
        return self._moved(w, self.decayed(w, g), kept, step)

    def _moved(self, w: Tensor, g: Tensor, kept: Mapping[str, Tensor], step: Step) -> Updated:
        first, second = kept["moment1"], kept["moment2"]
        first = step.formulas.kept(first + (g - first) * (1.0 - self.beta1))
        second = step.formulas.kept(second * self.beta2 + g * g * (1.0 - self.beta2))
        found = {"moment1": first, "moment2": second}
        if self.amsgrad:
            second = found["largest_moment2"] = step.formulas.kept(maximum(kept["largest_moment2"], second))
        size = step.formulas.kept(step.rate / (1.0 - self.beta1**step.number))
        root = step.formulas.kept(sqrt(1.0 - self.beta2**step.number))
        return w - first * like(size, w) / (sqrt(second) / like(root, w) + self.epsilon), found


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017; as `torch.optim.AdamW`)."""

    weight_decay: float = 1e-2

    def updated(self, w: Tensor, g: Tensor, kept: Mapping[str, Tensor], step: Step) -> Updated:
        left = like(1.0 - step.rate * self.weight_decay, w)
        return self._moved(w * left, g, kept, step)


@dataclass(frozen=True)
class Adagrad(Optimizer):
    """Adaptive subgradient descent (Duchi et al., 2011; as `torch.optim.Adagrad`)."""

    learning_rate: float = 1e-2
    rate_decay: float = 0.0
    initial_accumulator: float = 0.0
    epsilon: float = 1e-10

    def kept(self) -> Mapping[str, float]:
        return {"squares": self.initial_accumulator}

    def updated(self, w: Tensor, g: Tensor, kept: Mapping[str, Tensor], step: Step) -> Updated:
        g = self.decayed(w, g)
        squares = step.formulas.kept(kept["squares"] + g * g)
        rate = step.rate / ((step.number - 1.0) * self.rate_decay + 1.0) if self.rate_decay else step.rate
        return w - like(rate, w) * g / (sqrt(squares) + self.epsilon), {"squares": squares}


@dataclass(frozen=True)
class RMSprop(Optimizer):
    """Division by the root of a running mean of squares (Hinton, 2012; as `torch.optim.RMSprop`)."""

    learning_rate: float = 1e-2
    alpha: float = 0.99
    epsilon: float = 1e-8
    momentum: float = 0.0
    centered: bool = False

    def kept(self) -> Mapping[str, float]:
        names = ["squares", *["mean"] * self.centered, *["momentum"] * bool(self.momentum)]
        return dict.fromkeys(names, 0.0)

    def updated(self, w: Tensor, g: Tensor, kept: Mapping[str, Tensor], step: Step) -> Updated:
        g = self.decayed(w, g)
        squares = step.formulas.kept(kept["squares"] * self.alpha + g * g * (1.0 - self.alpha))
        found = {"squares": squares}
        spread = squares
        if self.centered:
            mean = kept["mean"]
            mean = found["mean"] = step.formulas.kept(mean + (g - mean) * (1.0 - self.alpha))
            spread = squares - mean * mean
        direction = g / (sqrt(spread) + self.epsilon)
        if self.momentum:
            direction = found["momentum"] = step.formulas.kept(kept["momentum"] * self.momentum + direction)
        return w - like(step.rate, w) * direction, found


@dataclass(frozen=True)
class LAMB(Adam):
    """
    Adam with steps proportional to the norm of the parameters (You et al., 2019, algorithm 2, with bias correction).
    """

    epsilon: float = 1e-6
    weight_decay: float = 1e-2

    def updated(self, w: Tensor, g: Tensor, kept: Mapping[str, Tensor], step: Step) -> Updated:
        formulas = step.formulas
        first = formulas.kept(kept["moment1"] * self.beta1 + g * (1.0 - self.beta1))
        second = formulas.kept(kept["moment2"] * self.beta2 + g * g * (1.0 - self.beta2))
        correction1 = like(formulas.kept(1.0 / (1.0 - self.beta1**step.number)), w)
        correction2 = like(formulas.kept(1.0 / (1.0 - self.beta2**step.number)), w)
        direction = first * correction1 / (sqrt(second * correction2) + self.epsilon)
        direction = formulas.kept(direction + w * self.weight_decay if self.weight_decay else direction)
        long, wide = _norm(direction, formulas), _norm(w, formulas)
        trust = where((wide > 0.0) & (long > 0.0), wide / long, 1.0)
        return w - like(step.rate, w) * trust * direction, {"moment1": first, "moment2": second}


def _norm(x: Tensor, formulas: Formulas) -> Tensor:
    """The Euclidean norm of all elements."""
    return formulas.of(over_all(ReduceL2Op, formulas.value(x), formulas.emit))


OPTIMIZERS: dict[str, type[Optimizer]] = {
    "adagrad": Adagrad,
    "adam": Adam,
    "adamw": AdamW,
    "lamb": LAMB,
    "rmsprop": RMSprop,
    "sgd": SGD,
}
"""Name of an optimizer in tools → its class."""
