"""The values of derivatives: expressions, numbers, and choices of numbers; and their arithmetic."""

from __future__ import annotations

from glow_mlir.dialects import expressions as ex
from glow_mlir.dialects.expressions import Number, Tensor
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True, eq=False)
class Choice:
    """A choice between two numbers or choices by a condition: like `where`, but without an element type."""

    condition: Tensor
    yes: Number | Choice
    no: Number | Choice


Value = Tensor | Number | Choice
"""A derivative, or a part of one."""


def choice(condition: Tensor, yes: Value, no: Value) -> Value:
    """`yes` where the condition holds, otherwise `no`."""
    if isinstance(yes, Tensor) or isinstance(no, Tensor):
        like = yes if isinstance(yes, Tensor) else no
        assert isinstance(like, Tensor)
        return ex.where(condition, tensor_of(yes, like), tensor_of(no, like))
    return yes if yes is no or (not isinstance(yes, Choice) and yes == no) else Choice(condition, yes, no)


def tensor_of(value: Value, like: Tensor) -> Tensor | Number:
    """A value without choices: an expression with the element type of another, or a number."""
    if not isinstance(value, Choice):
        return value
    yes, no = tensor_of(value.yes, like), tensor_of(value.no, like)
    if not isinstance(yes, Tensor) and not isinstance(no, Tensor):
        truth = ex.converted(value.condition, like.element)
        return truth * (yes - no) + no if no else truth * yes
    return ex.where(value.condition, yes, no)


def times(x: Value, y: Value) -> Value:
    """The product; 0 times anything is 0, even infinity: what is not chosen has no influence."""
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Tensor | Choice):
            continue
        if one in (0, 1):
            return other if one else 0
        if one == -1:
            return negated(other)
    if isinstance(x, Choice):
        return choice(x.condition, times(x.yes, y), times(x.no, y))
    if isinstance(y, Choice):
        return choice(y.condition, times(x, y.yes), times(x, y.no))
    return x * y


def plus(x: Value, y: Value) -> Value:
    """The sum."""
    if not isinstance(x, Tensor | Choice) and x == 0:
        return y
    if not isinstance(y, Tensor | Choice) and y == 0:
        return x
    if isinstance(x, Choice):
        return choice(x.condition, plus(x.yes, y), plus(x.no, y))
    if isinstance(y, Choice):
        return choice(y.condition, plus(x, y.yes), plus(x, y.no))
    return x + y


def negated(x: Value) -> Value:
    """The negative."""
    if isinstance(x, Choice):
        return choice(x.condition, negated(x.yes), negated(x.no))
    return -x
