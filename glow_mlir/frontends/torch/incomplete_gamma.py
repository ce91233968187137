"""PyTorch's incomplete Gamma functions, by their series and by their continued fraction."""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.dialects.builtin import f64, i1
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.expressions import Tensor, converted, equal, exp, log, where
from glow_mlir.dialects.glow_high.loop import Trips
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.torch.formulas import exactly, operand
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.logic import is_any
from glow_mlir.frontends.torch.node import Operand, TorchNode
from glow_mlir.frontends.torch.special_functions import lgamma

MOST_STEPS = 4096
"""Steps at most; where both operands are about n, some √n are taken."""

TINY = 1e-30
"""What stands for 0 in a denominator."""


def _rounding(element: Attribute) -> float:
    """What is nothing next to 1, after some roundings."""
    return 2.0**-51 if element == f64 else 2.0**-22


def _values(node: TorchNode, *formulas: Tensor) -> list[SSAValue]:
    return [node.expanded(node.value(formula)) for formula in formulas]


def _trips(node: TorchNode) -> Trips:
    return Trips(MOST_STEPS, node.splat(True, i1))


def _step(node: TorchNode, body: Body, element: Attribute) -> Tensor:
    """The number of a trip, from 1 on."""
    return converted(node.formulas.of(body.block.args[0]) + 1, element)


def series(node: TorchNode, a: Tensor, x: Tensor) -> Tensor:
    """Σ x^k / ((a + 1) … (a + k)) of all k from 0 on, for x that is not far above a."""
    one = a * 0.0 + 1.0
    body = Body(node, _values(node, one, one), [])
    with node.builder.inside(body.block):
        term, total = map(node.formulas.of, body.carried)
        term = node.formulas.kept(term * x / (a + _step(node, body, a.element)))
        total = node.formulas.kept(total + term)
        condition = is_any(node, term > total * _rounding(a.element))
    return node.formulas.of(
        body.emit(Trips(MOST_STEPS, node.splat(True, i1)), _values(node, term, total), [], condition)[1]
    )


def fraction(node: TorchNode, a: Tensor, x: Tensor) -> Tensor:
    """
    The continued fraction of Γ(a, x) x^-a e^x, for x above 1 and a.

    It is evaluated from its front (Lentz, 1976).
    """
    first = 1.0 / (x + 1.0 - a)
    body = Body(node, _values(node, a * 0.0 + 1.0 / TINY, first, first), [])
    with node.builder.inside(body.block):
        upper, lower, total = map(node.formulas.of, body.carried)
        step = _step(node, body, a.element)
        top, bottom = step * (a - step), x + 1.0 - a + step * 2.0
        lower, upper = top * lower + bottom, bottom + top / upper
        lower = 1.0 / where(abs(lower) < TINY, TINY, lower)
        upper = node.formulas.kept(where(abs(upper) < TINY, TINY, upper))
        factor = node.formulas.kept(lower * upper)
        condition = is_any(node, abs(factor - 1.0) > _rounding(a.element))
        following = _values(node, upper, lower, total * factor)
    return node.formulas.of(body.emit(_trips(node), following, [], condition)[2])


def _parts(node: TorchNode, a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The shares of the Gamma function of the integrals up to x and from x on; NaN and infinities are not yet right."""
    is_plain = (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    is_near = is_plain & ((x <= 1.0) | (x <= a))
    is_far = is_plain & (x > 1.0) & (x > a)
    # Where the other one is asked for, each converges at once.
    near = node.formulas.kept(where(is_near, a, 1.0)), node.formulas.kept(where(is_near, x, 0.0))
    far = node.formulas.kept(where(is_far, a, 1.0)), node.formulas.kept(where(is_far, x, 40.0))
    scale = node.formulas.kept(exp(a * log(x) - x - lgamma(a)))
    below, above = scale / a * series(node, *near), scale * fraction(node, *far)
    return where(is_near, below, 1.0 - above), where(is_near, 1.0 - below, above)


def _importer(number: int) -> Callable[..., SSAValue]:
    """The share up to x, where `number` is 0, or the rest."""
    none, all_ = float(number), 1.0 - number

    def run(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
        if 0 in node.sizes:
            return node.splat(0, node.element, node.sizes)
        a, x = (
            node.formulas.of(node.expanded(node.value(operand(node, item, exactly(node))))) for item in (one, other)
        )
        found = _parts(node, a, x)[number]
        found = where(equal(x, math.inf) | equal(a, 0.0), all_, found)
        found = where(equal(a, math.inf) | (equal(x, 0.0) & (a > 0.0)), none, found)
        is_number = (a >= 0.0) & (x >= 0.0) & ((a > 0.0) | (x > 0.0)) & ((a < math.inf) | (x < math.inf))
        return node.cast(node.value(where(is_number, found, math.nan)), node.element)

    return run


torch_operator("igamma.default", "special_gammainc.default")(_importer(0))
torch_operator("igammac.default", "special_gammaincc.default")(_importer(1))
