"""ONNX's training operators: gradients and optimizers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor, converted, sqrt, where
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.formulas import WIDE, Formulas, like
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator

DOMAIN = "ai.onnx.preview.training"


@onnx_operator("Gradient", domain=DOMAIN)
def gradient(node: Node) -> Sequence[SSAValue]:
    """
    The gradients of the sum of the tensor `y` with respect to the tensors named in `xs`; `zs` are held constant.

    Operands must be the values from which `y` was computed; recomputation from other values is not supported.
    """
    sources = node.texts("xs")
    names = [*sources, *node.texts("zs", ())]
    if len(names) != len(node.inputs):
        hint = "it has one operand for each name of xs and zs"
        raise ModelError(f"Gradient: {len(names)} names and {len(node.inputs)} operands", node=node.name, hint=hint)
    for position, name in enumerate(names):
        if node.named(name) is not node.input(position):
            raise node.unsupported(f"operand {position} is not '{name}', from which '{node.text('y')}' was computed")
    target = node.named(node.text("y"))
    results = node.emit_all(GradientOp, target, None, [node.input(position) for position in range(len(sources))])
    for result in results:
        node.builder.folding.tell(result, None)  # Not known before a pass replaces it.
    return results


class _Update(ABC):
    """
    An optimizer's update of a tensor `x` by its gradient `g`; `kept` is the optimizer's state for the tensor.

    `rate` is the learning rate, `count` the number of previous updates, an f64 scalar.
    """

    KEPT: ClassVar[int] = 1
    """The number of state tensors for each tensor."""

    def __init__(self, node: Node) -> None:
        self.formulas = Formulas(node)
        self.norm = node.float("norm_coefficient", 0.0)
        self.rate = converted(self.formulas.of(node.input(0)), WIDE)
        self.count = converted(self.formulas.of(node.input(1)), WIDE)

    def regularized(self, x: Tensor, g: Tensor) -> Tensor:
        """The gradient with L2 regularization, weighted by `norm_coefficient`."""
        return g + x * self.norm if self.norm else g

    @abstractmethod
    def updated(self, x: Tensor, g: Tensor, *kept: Tensor) -> Sequence[Tensor]:
        """The tensor after an update, and the new state."""


class Adagrad(_Update):
    """Adagrad: steps are divided by the root of the sum of squares of all gradients."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.epsilon = node.float("epsilon", 1e-6)
        self.step = self.formulas.kept(self.rate / (self.count * node.float("decay_factor", 0.0) + 1.0))

    def updated(self, x: Tensor, g: Tensor, *kept: Tensor) -> Sequence[Tensor]:
        (squares,) = kept
        g = self.formulas.kept(self.regularized(x, g))
        squares = self.formulas.kept(squares + g * g)
        return x - like(self.step, x) * g / (sqrt(squares) + self.epsilon), squares


class Adam(_Update):
    """Adam: steps are running means of gradients, divided by the root of running means of their squares."""

    KEPT: ClassVar[int] = 2

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.alpha, self.beta = node.float("alpha", 0.9), node.float("beta", 0.999)
        self.epsilon, self.norm_post = node.float("epsilon", 1e-6), node.float("norm_coefficient_post", 0.0)
        corrected = self.rate * sqrt(1.0 - self.beta**self.count) / (1.0 - self.alpha**self.count)
        self.step = self.formulas.kept(where(self.count > 0.0, corrected, self.rate))

    def updated(self, x: Tensor, g: Tensor, *kept: Tensor) -> Sequence[Tensor]:
        first, second = kept
        g = self.formulas.kept(self.regularized(x, g))
        first = self.formulas.kept(first * self.alpha + g * (1.0 - self.alpha))
        second = self.formulas.kept(second * self.beta + g * g * (1.0 - self.beta))
        changed = x - like(self.step, x) * first / (sqrt(second) + self.epsilon)
        return changed * (1.0 - self.norm_post) if self.norm_post else changed, first, second


class Momentum(_Update):
    """Momentum: steps are sums of gradients with decaying weights; with `nesterov`, they look one step ahead."""

    MODES: ClassVar[tuple[str, ...]] = ("standard", "nesterov")

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.alpha = node.float("alpha")
        self.mode = node.text("mode")
        if self.mode not in self.MODES:
            hint = f"it is one of {', '.join(self.MODES)}"
            raise ModelError(f"Momentum: mode '{self.mode}' does not exist", node=node.name, hint=hint)
        # The first gradient has weight 1.
        self.weight = self.formulas.kept(where(self.count > 0.0, self.count * 0.0 + node.float("beta"), 1.0))

    def updated(self, x: Tensor, g: Tensor, *kept: Tensor) -> Sequence[Tensor]:
        (momentum,) = kept
        g = self.formulas.kept(self.regularized(x, g))
        momentum = self.formulas.kept(momentum * self.alpha + g * like(self.weight, x))
        step = momentum if self.mode == "standard" else g + momentum * self.alpha
        return x - like(self.rate, x) * step, momentum


def _optimizer(kind: type[_Update]) -> Callable[[Node], Sequence[SSAValue]]:
    """The importer of an optimizer."""
    return lambda node: _all_updated(node, kind)


def _all_updated(node: Node, kind: type[_Update]) -> Sequence[SSAValue]:
    """
    All tensors, then all states, after an update.

    Operands are rate and count, then all tensors, all gradients, and all states; raises `ModelError` for another
    number.
    """
    given, groups = node.present()[2:], 2 + kind.KEPT
    if not given or len(given) % groups:
        hint = f"R and T are followed by {groups} for each tensor"
        raise ModelError(f"{node.kind}: {len(given)} tensors", node=node.name, hint=hint)
    number, update = len(given) // groups, kind(node)
    operands = [update.formulas.of(value) for value in given]
    found = [update.updated(*operands[index::number]) for index in range(number)]
    return [update.formulas.value(tensors[group]) for group in range(1 + kind.KEPT) for tensors in found]


for _kind in (Adagrad, Adam, Momentum):
    onnx_operator(_kind.__name__, domain=DOMAIN)(_optimizer(_kind))
