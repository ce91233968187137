"""
The words of kernels: what a function that `glow_mlir.kernel` decorates computes with, besides Python's operators.

```python
import glow_mlir
from glow_mlir.kernels import exp, reduce_max, reduce_sum

@glow_mlir.kernel("x[..., j] -> y[..., j]")
def softmax(x):
    e = exp(x - reduce_max(x, "j"))
    return e / reduce_sum(e, "j")
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glow_mlir.kernels.expressions import (
    Number,
    Tensor,
    binary,
    cast,
    compare,
    fold,
    maximum,
    mean,
    minimum,
    unary,
    where,
)


def _function(name: str) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        return unary(name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The function `{name}` of a float, as the operator of `glow_high` of that name."
    return function


acos, acosh, asin, asinh, atan, atanh = map(_function, ("acos", "acosh", "asin", "asinh", "atan", "atanh"))
cos, cosh, sin, sinh, tan, tanh = map(_function, ("cos", "cosh", "sin", "sinh", "tan", "tanh"))
erf, exp, expm1, log, log1p, sqrt = map(_function, ("erf", "exp", "expm1", "log", "log1p", "sqrt"))
ceil, floor, round_even, trunc = map(_function, ("ceil", "floor", "round_even", "trunc"))


def equal(x: Tensor, y: Tensor | Number) -> Tensor:
    """Where two values are equal, as truth values; false where either is NaN."""
    return compare("eq", x, y)


def not_equal(x: Tensor, y: Tensor | Number) -> Tensor:
    """Where two values differ, as truth values; true where either is NaN."""
    return compare("ne", x, y)


def power(x: Tensor, y: Tensor | Number) -> Tensor:
    """`x` to the power `y`."""
    return binary("power", x, y)


def reduce_sum(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The sum along dimensions, of f16 and bf16 in f32."""
    return fold("add", x, along)


def reduce_mean(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The mean along dimensions."""
    return mean(x, along)


def reduce_prod(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The product along dimensions."""
    return fold("mul", x, along)


def reduce_max(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The largest element along dimensions; NaN if one is."""
    return fold("max", x, along)


def reduce_min(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The smallest element along dimensions; NaN if one is."""
    return fold("min", x, along)


def reduce_fmax(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The largest element along dimensions that is a number; minus infinity if none is."""
    return fold("maxnum", x, along)


def reduce_fmin(x: Tensor, along: str | Sequence[str]) -> Tensor:
    """The smallest element along dimensions that is a number; infinity if none is."""
    return fold("minnum", x, along)


__all__ = [
    "Tensor",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cast",
    "ceil",
    "cos",
    "cosh",
    "equal",
    "erf",
    "exp",
    "expm1",
    "floor",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "not_equal",
    "power",
    "reduce_fmax",
    "reduce_fmin",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "round_even",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "where",
]
