"""PyTorch's orthogonal polynomials of any degree, computed by their recurrences."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor, acos, converted, cos, equal, sin, where
from glow_mlir.dialects.glow_high.loop import Trips
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.torch.formulas import operand
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import flat
from glow_mlir.frontends.torch.node import Operand, TorchNode
from glow_mlir.support.dataclass import dataclass

Closed = Callable[[Tensor, Tensor], Tensor]
"""Degree and angle → the polynomial at the cosine of the angle."""


@dataclass(frozen=True)
class Family:
    """A family of polynomials; the polynomial of degree 0 is 1."""

    second: Callable[[Tensor], Tensor]
    """The polynomial of degree 1."""
    step: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
    """k, x, and the polynomials of degrees k - 1 and k → the polynomial of degree k + 1."""
    closed: Closed | None = None
    """A closed form between -1 and 1, used for high degrees."""
    has_limit: bool = False
    """Whether PyTorch returns NaN for degrees beyond `LIMITS`."""


LIMITS = {True: 512, False: 128}
"""Whether numbers are f64 → the highest degree of a Hermite polynomial."""

FEW = 6
"""The highest degree for which the closed form is not used."""


def _chebyshev_step(_: Tensor, x: Tensor, before: Tensor, last: Tensor) -> Tensor:
    return (x + x) * last - before


def _first_kind(degree: Tensor, angle: Tensor) -> Tensor:
    return cos(degree * angle)


def _second_kind(degree: Tensor, angle: Tensor) -> Tensor:
    return sin((degree + 1.0) * angle) / sin(angle)


def _third_kind(degree: Tensor, angle: Tensor) -> Tensor:
    return cos((degree + 0.5) * angle) / cos(angle * 0.5)


def _fourth_kind(degree: Tensor, angle: Tensor) -> Tensor:
    return sin((degree + 0.5) * angle) / sin(angle * 0.5)


CHEBYSHEV: Mapping[str, Family] = {
    "chebyshev_polynomial_t": Family(lambda x: x, _chebyshev_step, _first_kind),
    "chebyshev_polynomial_u": Family(lambda x: x + x, _chebyshev_step, _second_kind),
    "chebyshev_polynomial_v": Family(lambda x: x + x - 1.0, _chebyshev_step, _third_kind),
    "chebyshev_polynomial_w": Family(lambda x: x + x + 1.0, _chebyshev_step, _fourth_kind),
}

FAMILIES: Mapping[str, Family] = {
    **CHEBYSHEV,
    "hermite_polynomial_h": Family(
        lambda x: x + x, lambda k, x, before, last: (x + x) * last - (k + k) * before, has_limit=True
    ),
    "hermite_polynomial_he": Family(lambda x: x, lambda k, x, before, last: x * last - k * before, has_limit=True),
    "laguerre_polynomial_l": Family(
        lambda x: 1.0 - x, lambda k, x, before, last: ((k + k + 1.0 - x) * last - k * before) / (k + 1.0)
    ),
    "legendre_polynomial_p": Family(
        lambda x: x, lambda k, x, before, last: ((k + k + 1.0) * x * last - k * before) / (k + 1.0)
    ),
}
"""Name of an operator → its polynomials (Abramowitz and Stegun, 1964, 22.7)."""


def by_recurrence(node: TorchNode, family: Family, x: Tensor, degree: Tensor) -> Tensor:
    """The polynomials of degrees from 1 on; lower degrees give the polynomial of degree 1."""
    first, second = node.splat(1, x.element, node.sizes), node.expanded(node.value(family.second(x)))
    highest = node.emit(ReduceMaxOp, flat(node, node.value(degree)), axes=(0,), keepdims=False)
    trips = node.value(node.formulas.of(highest) - 1)
    body = Body(node, [first, second], [])
    with node.builder.inside(body.block):
        number = node.formulas.of(body.block.args[0]) + 1
        before, last = (node.formulas.of(value) for value in body.carried)
        following = family.step(converted(number, x.element), x, before, last)
        chosen = node.expanded(node.value(where(number < degree, following, last)))
    return node.formulas.of(body.emit(Trips(trips), [body.carried[1], chosen], [])[1])


def evaluated(node: TorchNode, family: Family, x: Tensor, degree: Tensor) -> SSAValue:
    """Evaluate polynomials; 0 for negative degrees."""
    looped = degree
    if family.has_limit:
        limit = LIMITS[x.element == f64]
        looped = where(degree > limit, 0, looped)
    is_closed = (abs(x) < 1.0) & (degree > FEW)
    if family.closed is not None:
        looped = where(is_closed, 0, looped)
    found = by_recurrence(node, family, x, node.formulas.kept(looped))
    if family.closed is not None:
        found = where(is_closed, family.closed(converted(degree, x.element), acos(x)), found)
    if family.has_limit:
        found = where(degree > LIMITS[x.element == f64], float("nan"), found)
    return node.value(where(degree < 0, 0.0, where(equal(degree, 0), 1.0, found)))


def _importer(family: Family, is_shifted: bool) -> Callable[..., SSAValue]:
    """The importer of a family; shifted polynomials are defined on [0, 1] instead of [-1, 1]."""

    def run(node: TorchNode, value: Operand, degree: Operand) -> SSAValue:
        if 0 in node.sizes:
            return node.splat(0, node.element, node.sizes)
        x = operand(node, value, node.wide)
        argument = node.formulas.kept(x + x - 1.0 if is_shifted else x)
        # Degrees are truncated to integers.
        whole = node.formulas.of(node.expanded(node.tensor(degree, i64)))
        return node.cast(node.expanded(evaluated(node, family, argument, whole)), node.element)

    return run


def _register(name: str, family: Family, is_shifted: bool = False) -> None:
    overloads = ("default", "x_scalar", "n_scalar")
    torch_operator(*(f"special_{name}.{overload}" for overload in overloads))(_importer(family, is_shifted))


for _name, _family in FAMILIES.items():
    _register(_name, _family)
for _name, _family in CHEBYSHEV.items():
    _register(f"shifted_{_name}", _family, is_shifted=True)
