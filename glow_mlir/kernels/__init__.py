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

from glow_mlir.dialects.expressions import (
    Tensor,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cast,
    ceil,
    cos,
    cosh,
    equal,
    erf,
    exp,
    expm1,
    floor,
    fma,
    indices,
    log,
    log1p,
    maximum,
    minimum,
    not_equal,
    position,
    power,
    reduce_fmax,
    reduce_fmin,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    round_even,
    sin,
    sinh,
    size_along,
    sqrt,
    tan,
    tanh,
    trunc,
    where,
)

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
    "fma",
    "indices",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "not_equal",
    "position",
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
    "size_along",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "where",
]
