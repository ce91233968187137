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
    Tensor as Tensor,
    cast as cast,
    equal as equal,
    fma as fma,
    indices as indices,
    maximum as maximum,
    minimum as minimum,
    not_equal as not_equal,
    position as position,
    power as power,
    reduce_fmax as reduce_fmax,
    reduce_fmin as reduce_fmin,
    reduce_max as reduce_max,
    reduce_mean as reduce_mean,
    reduce_min as reduce_min,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    size_along as size_along,
    where as where,
)
from glow_mlir.dialects.scalar_functions import *
