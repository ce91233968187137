"""PyTorch's random operators, with our generator."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.expressions import Tensor, ceil, converted, exp, floor, log1p, maximum, tan, where
from glow_mlir.dialects.glow_high.elementwise_binary import LessOrEqualOp
from glow_mlir.dialects.glow_high.reductions import CumSumOp, ReduceSumOp, TopKOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.frontends.builder.random_numbers import RandomNumbers, computed_in, dropped_out
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import Operand, TorchNode
from glow_mlir.frontends.torch.sorting import length, ordered
from glow_mlir.support.symbols import Size, Sizes


def fractions(node: TorchNode, element: Attribute | None = None, sizes: Sizes | None = None) -> Tensor:
    """Uniform numbers in [0, 1), by default in the type of computation for the result."""
    numbers = RandomNumbers(node, node.sizes if sizes is None else sizes)
    drawn = numbers.fraction(computed_in(node.element) if element is None else element)
    return node.formulas.of(numbers.formulas.value(drawn))


def drawn(node: TorchNode, formula: Tensor) -> SSAValue:
    """Emit a formula, converted to the element type of the result."""
    return node.value(converted(formula, node.element))


def _draws(*names: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Register a formula of uniform numbers and of an operator's arguments after the first."""

    def register(formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def run(node: TorchNode, _: Any, *parameters: float, generator: None = None) -> SSAValue:
            return drawn(node, formula(fractions(node), *parameters))

        torch_operator(*names)(run)
        return formula

    return register


@torch_operator("rand.default", "rand_like.default")
def rand(node: TorchNode, *_: Any, **__: Any) -> SSAValue:
    """Uniform numbers in [0, 1)."""
    return RandomNumbers(node, node.sizes).uniform(node.element, 0.0, 1.0)


@torch_operator("uniform.default")
def uniform(node: TorchNode, _: SSAValue, low: float = 0, high: float = 1, **__: Any) -> SSAValue:
    """Uniform numbers in [low, high)."""
    return RandomNumbers(node, node.sizes).uniform(node.element, float(low), float(high))


@torch_operator("randn.default", "randn_like.default")
def randn(node: TorchNode, *_: Any, **__: Any) -> SSAValue:
    """Normally distributed numbers."""
    return RandomNumbers(node, node.sizes).normal(node.element, 0.0, 1.0)


@torch_operator("normal_functional.default")
def normal(node: TorchNode, _: Any, mean: float = 0, deviation: float = 1, **__: Any) -> SSAValue:
    """Normally distributed numbers with a mean and a standard deviation."""
    return RandomNumbers(node, node.sizes).normal(node.element, float(mean), float(deviation))


@torch_operator("normal.float_float", "normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor")
def normal_of(node: TorchNode, mean: Operand, deviation: Operand = 1.0, *_: Any, **__: Any) -> SSAValue:
    """Normally distributed numbers, each with its own mean and standard deviation."""
    wide = computed_in(node.element)
    numbers = node.of(RandomNumbers(node, node.sizes).normal(wide, 0.0, 1.0), wide)
    return drawn(node, numbers * node.of(deviation, wide) + node.of(mean, wide))


@_draws("exponential.default")
def exponential(fraction: Tensor, rate: float = 1) -> Tensor:
    """Exponentially distributed numbers."""
    return -log1p(-fraction) / float(rate)


@_draws("cauchy.default")
def cauchy(fraction: Tensor, median: float = 0, width: float = 1) -> Tensor:
    """Numbers with a Cauchy distribution."""
    return tan((fraction - 0.5) * math.pi) * float(width) + float(median)


@_draws("geometric.default")
def geometric(fraction: Tensor, probability: float) -> Tensor:
    """The number of trials up to the first success."""
    return maximum(ceil(log1p(-fraction) / math.log1p(-probability)), 1.0)


@torch_operator("log_normal.default")
def log_normal(node: TorchNode, _: SSAValue, mean: float = 1, deviation: float = 2, **__: Any) -> SSAValue:
    """Numbers whose logarithms are normally distributed."""
    wide = computed_in(node.element)
    numbers = RandomNumbers(node, node.sizes).normal(wide, float(mean), float(deviation))
    return drawn(node, exp(node.of(numbers, wide)))


MAX_WHOLE = 1 << 53
"""The maximum range of random integers: the number of fractions of f64."""


def whole_numbers(node: TorchNode, low: Size, high: Size) -> SSAValue:
    """Uniform integers in [low, high)."""
    if not isinstance(low, int) or not isinstance(high, int) or high - low > MAX_WHOLE:
        raise node.unsupported(f"whole numbers are drawn from up to 2^53, not from {low} to {high}")
    positions = converted(floor(fractions(node, f64) * float(high - low)), i64)
    return drawn(node, positions + low)


@torch_operator("randint.low", "randint.default")
def randint(node: TorchNode, *bounds: Any, **_: Any) -> SSAValue:
    """Uniform integers in [low, high), where `low` is 0 by default."""
    *low, high = bounds[:-1]
    return whole_numbers(node, low[0] if low else 0, high)


@torch_operator("randint_like.default", "randint_like.low_dtype")
def randint_like(node: TorchNode, _: SSAValue, low: Size, high: Size | None = None, **__: Any) -> SSAValue:
    """Uniform integers in [low, high), or in [0, low) without `high`."""
    return whole_numbers(node, 0, low) if high is None else whole_numbers(node, low, high)


@torch_operator("randperm.default")
def randperm(node: TorchNode, *_: Any, **__: Any) -> SSAValue:
    """A random permutation of the integers from 0 up to, but not including, a count."""
    if node.sizes == (0,):
        return node.splat(0, node.element, node.sizes)
    keys = node.value(fractions(node, f64))
    return node.tensor(ordered(node, keys, 0, length(node, keys, 0), largest=False)[1])


@torch_operator("bernoulli.p", "bernoulli.default", "bernoulli.Tensor")
def bernoulli(node: TorchNode, value: SSAValue, probability: Operand | None = None, **_: Any) -> SSAValue:
    """1 with a probability, by default the value of each element, else 0."""
    wide = computed_in(node.element)
    return drawn(node, fractions(node) < node.of(value if probability is None else probability, wide))


@torch_operator("native_dropout.default")
def native_dropout(node: TorchNode, value: SSAValue, share: float, training: bool | None) -> list[SSAValue]:
    """Set a share of the elements to 0, and scale the others to preserve the expectation; and the mask of kept ones."""
    mask = node.result(1)
    if training is False or share == 0:
        return [value, node.splat(1, *mask)]
    if share == 1:
        return [node.splat(0, node.element, node.sizes), node.splat(0, *mask)]
    numbers = RandomNumbers(node, node.sizes)
    result, kept = dropped_out(numbers, value, share)
    return [result, numbers.formulas.value(kept)]


@torch_operator("rrelu_with_noise_functional.default")
def rrelu(
    node: TorchNode,
    value: SSAValue,
    noise: SSAValue,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: None = None,
) -> list[SSAValue]:
    """x, or slope · x below 0, with a random slope in training; the second result has the factors of elements."""
    x = node.of(value)
    if not training:
        return [node.value(where(x > 0.0, x, x * ((lower + upper) / 2))), noise]
    slope = converted(fractions(node) * (upper - lower) + lower, node.element)
    factor = node.formulas.kept(where(x > 0.0, 1.0 + x * 0.0, slope))
    return [node.value(x * factor), node.value(factor)]


@torch_operator("multinomial.default")
def multinomial(node: TorchNode, weights: SSAValue, count: int, replacement: bool = False, **_: Any) -> SSAValue:
    """Draw classes for each row, with probabilities proportional to the weights."""
    sizes = sizes_of(weights)
    if not replacement:
        # The smallest of independent exponential times with the weights as rates has a class with that probability.
        time = -log1p(-fractions(node, f64, sizes)) / node.of(weights, f64)
        return node.emit_all(TopKOp, node.value(time), k=count, axis=rank_of(weights) - 1, largest=False)[1]
    rows = node.reshaped(node.cast(weights, f64), (*((1,) if rank_of(weights) == 1 else ()), *sizes))
    sums = node.emit(CumSumOp, rows, axis=1)
    height, classes = sizes_of(rows)
    total = cut(node, sums, {1: (classes - 1, classes)})
    positions = fractions(node, f64, (height, count)) * node.formulas.of(total)
    below = node.emit(
        LessOrEqualOp,
        node.reshaped(sums, (height, 1, classes)),
        node.reshaped(node.value(positions), (height, count, 1)),
    )
    return node.reshaped(node.emit(ReduceSumOp, node.cast(below, i64), axes=(2,), keepdims=False))


@torch_operator("rrelu_with_noise_backward.default")
def rrelu_backward(
    node: TorchNode,
    gradient: SSAValue,
    value: SSAValue,
    noise: SSAValue,
    lower: float,
    upper: float,
    training: bool,
    is_result: bool,
) -> SSAValue:
    """The gradient times the factors of elements; `value` may be the result, which has the operand's sign."""
    factor = where(node.of(value) > 0.0, 1.0, node.of(noise) * 0.0 + (lower + upper) / 2)
    return node.value(node.of(gradient) * (node.of(noise) if training else factor))
