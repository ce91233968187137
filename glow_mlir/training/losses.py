"""Losses as graphs of outputs and targets, to be minimized."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType, f32, i64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import number_width
from glow_mlir.dialects.expressions import Tensor, converted, equal, exp, log, log1p, maximum, not_equal, where
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.normalization import LogSoftmaxOp
from glow_mlir.dialects.glow_high.predicate import PredicateOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp, ReduceSumOp
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, size_along, sizes_of, tensor
from glow_mlir.errors import OptionError
from glow_mlir.frontends.builder.emission import OperatorEmitter, over_all
from glow_mlir.frontends.builder.formulas import Formulas
from glow_mlir.ir.emitter import Emitter
from glow_mlir.support.dataclass import dataclass

REDUCTIONS = ("mean", "sum")


@dataclass(frozen=True)
class Loss(ABC):
    """A scalar function of a model's output and of targets; `reduction` is `mean` or `sum` over all elements."""

    reduction: str = "mean"

    def __post_init__(self) -> None:
        if self.reduction not in REDUCTIONS:
            raise OptionError(f"a loss has no reduction '{self.reduction}'", hint=f"one of {', '.join(REDUCTIONS)}")

    def targets(self, output: TensorType[Attribute]) -> TensorType[Attribute]:
        """The type of targets for an output."""
        return output

    @abstractmethod
    def emitted(self, output: SSAValue, targets: SSAValue, emit: Emitter) -> SSAValue:
        """The loss, a scalar of the output's element type."""

    def wrong_class(self, targets: np.ndarray, shape: Sequence[int | str]) -> str:
        """The fault of targets that are classes of outputs of shape `shape`; empty if none."""
        return ""

    def weight(self, targets: np.ndarray | None, samples: int, shape: Sequence[int]) -> float:
        """
        The weight of the loss of a batch, with outputs of shape `shape`, relative to other batches of its `samples`.
        """
        return samples

    def wrong_target(self, targets: np.ndarray, shape: Sequence[int]) -> str:
        """The fault of targets for outputs of shape `shape`; empty if none."""
        return ""

    def right(self, output: np.ndarray, targets: np.ndarray) -> tuple[int, int] | None:
        """The number of correct classes of an output, and the total; `None` if there are no classes."""
        return None

    def reduced(self, value: SSAValue, emit: Emitter) -> SSAValue:
        """The mean or the sum of all elements."""
        operator = ReduceMeanOp if self.reduction == "mean" else ReduceSumOp
        return over_all(operator, value, emit)


class _Pointwise(Loss):
    """A loss of each output element and its target."""

    @abstractmethod
    def formula(self, y: Tensor, t: Tensor) -> Tensor:
        """The loss of an element."""

    def emitted(self, output: SSAValue, targets: SSAValue, emit: Emitter) -> SSAValue:
        formulas = Formulas(emit)
        return self.reduced(formulas.value(self.formula(formulas.of(output), formulas.of(targets))), emit)


@dataclass(frozen=True)
class MeanSquaredError(_Pointwise):
    """(y - t)² (as `torch.nn.MSELoss`)."""

    def formula(self, y: Tensor, t: Tensor) -> Tensor:
        distance = y - t
        return distance * distance


@dataclass(frozen=True)
class MeanAbsoluteError(_Pointwise):
    """|y - t| (as `torch.nn.L1Loss`)."""

    def formula(self, y: Tensor, t: Tensor) -> Tensor:
        return abs(y - t)


@dataclass(frozen=True)
class HuberLoss(_Pointwise):
    """(y - t)²/2 up to a distance of `delta`, then linear (as `torch.nn.HuberLoss`)."""

    delta: float = 1.0

    def formula(self, y: Tensor, t: Tensor) -> Tensor:
        distance = abs(y - t)
        return where(distance <= self.delta, distance * distance * 0.5, (distance - 0.5 * self.delta) * self.delta)


@dataclass(frozen=True)
class BinaryCrossEntropy(_Pointwise):
    """
    -(t·log y + (1 - t)·log(1 - y)) for probabilities; logarithms are clamped to at least -100 (as `torch.nn.BCELoss`).
    """

    def formula(self, y: Tensor, t: Tensor) -> Tensor:
        return -(t * _limited_log(y) + (1.0 - t) * _limited_log(1.0 - y))

    def wrong_target(self, targets: np.ndarray, shape: Sequence[int]) -> str:
        return _no_probability(targets)

    def right(self, output: np.ndarray, targets: np.ndarray) -> tuple[int, int] | None:
        return int(((output > 0.5) == (targets > 0.5)).sum()), targets.size


@dataclass(frozen=True)
class BinaryCrossEntropyWithLogits(_Pointwise):
    """
    Binary cross-entropy of sigmoid(y), without overflow (as `torch.nn.BCEWithLogitsLoss`; Glow's
    SigmoidCrossEntropyWithLogits).
    """

    def formula(self, y: Tensor, t: Tensor) -> Tensor:
        return maximum(y, 0.0) - y * t + log1p(exp(-abs(y)))

    def wrong_target(self, targets: np.ndarray, shape: Sequence[int]) -> str:
        return _no_probability(targets)

    def right(self, output: np.ndarray, targets: np.ndarray) -> tuple[int, int] | None:
        return int(((output > 0.0) == (targets > 0.5)).sum()), targets.size


@dataclass(frozen=True)
class KullbackLeiblerDivergence(_Pointwise):
    """t·(log t - y) for logarithms of probabilities y, 0 where t is 0 (as `torch.nn.KLDivLoss`)."""

    def formula(self, y: Tensor, t: Tensor) -> Tensor:
        return where(t > 0.0, t * (log(where(t > 0.0, t, 1.0)) - where(t > 0.0, y, 0.0)), 0.0)


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """
    -log softmax(y) at the class of each sample (as `torch.nn.CrossEntropyLoss`; ONNX SoftmaxCrossEntropyLoss).

    Classes are along `axis` of the output. Targets are i64 classes over the other axes; `ignore_index` and classes out
    of range count neither in the loss nor in the mean. With `probabilities`, targets have the output's shape. With
    `label_smoothing`, that fraction of each target is spread over all classes.
    """

    axis: int = 1
    probabilities: bool = False
    ignore_index: int = -100
    label_smoothing: float = 0.0

    def targets(self, output: TensorType[Attribute]) -> TensorType[Attribute]:
        if self.probabilities:
            return output
        axis = normalize_axis(self.axis, rank_of(output))
        return tensor([size for position, size in enumerate(sizes_of(output)) if position != axis], i64)

    def weight(self, targets: np.ndarray | None, samples: int, shape: Sequence[int]) -> float:
        if targets is None or self.probabilities or self.reduction == "sum":
            return samples
        classes = shape[normalize_axis(self.axis, len(shape))]
        return int(((targets != self.ignore_index) & (targets >= 0) & (targets < classes)).sum())

    def wrong_target(self, targets: np.ndarray, shape: Sequence[int]) -> str:
        return _no_probability(targets) if self.probabilities else self.wrong_class(targets, shape)

    def wrong_class(self, targets: np.ndarray, shape: Sequence[int | str]) -> str:
        classes = shape[normalize_axis(self.axis, len(shape))]
        if self.probabilities or not isinstance(classes, int):
            return ""
        wrong = targets[((targets < 0) | (targets >= classes)) & (targets != self.ignore_index)]
        return f"is no class from 0 to {classes - 1}: {wrong.flat[0]}" if wrong.size else ""

    def right(self, output: np.ndarray, targets: np.ndarray) -> tuple[int, int] | None:
        found = output.argmax(axis=self.axis)
        if self.probabilities:
            return int((found == targets.argmax(axis=self.axis)).sum()), found.size
        valid = targets != self.ignore_index
        return int(((found == targets) & valid).sum()), int(valid.sum())

    def emitted(self, output: SSAValue, targets: SSAValue, emit: Emitter) -> SSAValue:
        axis, formulas = normalize_axis(self.axis, rank_of(output)), Formulas(emit)
        count = size_along(output, axis)
        if self.probabilities:
            wanted, valid = formulas.of(targets), None
        else:
            chosen, valid = self._chosen(targets, output, axis, emit, formulas)
            wanted = converted(chosen, element_of(output))
            if axis == rank_of(output) - 1:
                counted = emit(ReshapeOp, formulas.value(valid), shape=sizes_of(output)[:-1])
                output = emit(PredicateOp, output, counted)
        logarithms = formulas.of(emit(LogSoftmaxOp, output, axis=axis))
        if self.label_smoothing:
            wanted = wanted * (1.0 - self.label_smoothing) + self.label_smoothing / count
            wanted = wanted if valid is None else wanted * converted(valid, element_of(output))
        # Other classes may have the logarithm of 0.
        lost = formulas.value(where(not_equal(wanted, 0.0), -(logarithms * wanted), 0.0))
        total = formulas.of(_total(lost, emit))
        if self.reduction == "mean":
            total = total / _samples(valid, output, axis, formulas)
        return formulas.value(converted(total, element_of(output)))

    def _chosen(
        self, targets: SSAValue, output: SSAValue, axis: int, emit: Emitter, formulas: Formulas
    ) -> tuple[Tensor, Tensor]:
        """
        Whether each class is that of its sample, and whether a sample counts; classes are an axis, of size one in the
        latter.
        """
        sizes = list(sizes_of(output))
        positions = np.arange(size_along(output, axis), dtype=np.int64).reshape(-1, *[1] * (len(sizes) - axis - 1))
        sizes[axis] = 1
        labels = formulas.of(emit(ReshapeOp, targets, shape=sizes))
        valid = formulas.kept((labels >= 0) & (labels < len(positions)) & not_equal(labels, self.ignore_index))
        return equal(labels, formulas.of(emit.constant(positions, "classes"))) & valid, valid


def _limited_log(x: Tensor) -> Tensor:
    """The logarithm clamped to at least -100, constant below; its slope at 0 would be infinite."""
    return where(x > 0.0, maximum(log(where(x > 0.0, x, 1.0)), -100.0), -100.0)


def wide_element(element: Attribute) -> Attribute:
    """The element type of sums: f32 for narrower floats."""
    return f32 if number_width(element) < number_width(f32) else element


def _no_probability(targets: np.ndarray) -> str:
    """The fault of targets that should be probabilities; empty if none."""
    wrong = targets[~((targets >= 0) & (targets <= 1))]
    return f"is no probability: {wrong.flat[0]}" if wrong.size else ""


def _samples(valid: Tensor | None, output: SSAValue, axis: int, formulas: Formulas) -> Tensor:
    """The number of samples that count, at least 1, in the type of the outputs' sums."""
    element = wide_element(element_of(output))
    if valid is None:
        sizes = tuple(1 if position == axis else size for position, size in enumerate(sizes_of(output)))
        counted = formulas.emit.splat(1, element, sizes)
    else:
        counted = formulas.value(converted(valid, element))
    return maximum(formulas.of(_total(counted, formulas.emit)), 1.0)


def _total(value: SSAValue, emit: OperatorEmitter) -> SSAValue:
    """The sum of all elements, in f32 for narrow floats."""
    if (wide := wide_element(element_of(value))) != element_of(value):
        value = emit(CastOp, value, to=wide)
    return over_all(ReduceSumOp, value, emit)


@dataclass(frozen=True)
class OutputLoss(Loss):
    """The output itself, for a model that computes its own loss: its mean or sum, without targets."""

    def emitted(self, output: SSAValue, targets: SSAValue, emit: Emitter) -> SSAValue:
        return self.reduced(output, emit)


LOSSES: dict[str, Callable[[], Loss]] = {
    "binary_cross_entropy": BinaryCrossEntropy,
    "binary_cross_entropy_with_logits": BinaryCrossEntropyWithLogits,
    "cross_entropy": CrossEntropy,
    "huber": HuberLoss,
    "kl_divergence": KullbackLeiblerDivergence,
    "l1": MeanAbsoluteError,
    "mse": MeanSquaredError,
    "output": OutputLoss,
}
"""Name of a loss in tools → the loss."""
