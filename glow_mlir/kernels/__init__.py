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
    reduce_mean as reduce_mean,
    size_along as size_along,
    where as where,
)
from glow_mlir.dialects.fold_kinds import *
from glow_mlir.dialects.scalar_functions import *
