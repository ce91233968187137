"""
The folds, one row each; words, verifier, interpreter, machine code, threads and gradient are derived from it.

All public names of this module are folds and words of `glow_mlir.kernels`.
"""

from collections.abc import Sequence as _Sequence
from math import inf as _inf
from typing import TYPE_CHECKING as _TYPE_CHECKING

from xdsl.dialects import arith as _arith

from glow_mlir.dialects.fold_kind import FLOAT as _FLOAT
from glow_mlir.dialects.fold_kind import SIGNED as _SIGNED
from glow_mlir.dialects.fold_kind import UNSIGNED as _UNSIGNED
from glow_mlir.dialects.fold_kind import FoldKind as _Kind

if _TYPE_CHECKING:
    from glow_mlir.dialects.expressions import Tensor as _Tensor


def _product_of_others(g: "_Tensor", x: "_Tensor", y: "_Tensor", along: _Sequence[str]) -> "_Tensor":
    """The gradient of a product: the product of the other factors, also where one or two of these are 0."""
    from glow_mlir.dialects.expressions import converted, equal, where

    is_zero = equal(x, 0)
    zeros = reduce_sum(converted(is_zero, y.element), along)
    others = reduce_prod(where(is_zero, 1.0, x), along)
    return g * where(equal(zeros, 0), y / x, where(is_zero & equal(zeros, 1), others, 0))


def _shared(g: "_Tensor", x: "_Tensor", y: "_Tensor", along: _Sequence[str]) -> "_Tensor":
    """The gradient of an extreme: all elements equal to it get the same fraction."""
    from glow_mlir.dialects.expressions import converted, equal, where

    is_chosen = equal(x, y)
    return where(is_chosen, g / reduce_sum(converted(is_chosen, y.element), along), 0)


reduce_sum = _Kind(
    "add",
    "The sum along dimensions, of f16 and bf16 in f32.",
    0,
    is_running=True,
    adjoint=lambda g, x, y, along: g,
)
reduce_prod = _Kind("mul", "The product along dimensions.", 1, is_running=True, adjoint=_product_of_others)
reduce_max = _Kind(
    "max",
    "The largest element along dimensions; NaN if one is.",
    -_inf,
    ("maximumf", "maxsi", "maxui"),
    (_FLOAT, _SIGNED, _UNSIGNED),
    better="gt",
    is_idempotent=True,
    adjoint=_shared,
)
reduce_min = _Kind(
    "min",
    "The smallest element along dimensions; NaN if one is.",
    _inf,
    ("minimumf", "minsi", "minui"),
    (_FLOAT, _SIGNED, _UNSIGNED),
    better="lt",
    is_idempotent=True,
    adjoint=_shared,
)
reduce_fmax = _Kind(
    "maxnum",
    "The largest element that is a number; minus infinity if none is.",
    -_inf,
    ("maxnumf",),
    (_FLOAT,),
    _arith.MaxnumfOp,
    of_integers="max",
    is_idempotent=True,
    adjoint=_shared,
)
reduce_fmin = _Kind(
    "minnum",
    "The smallest element that is a number; infinity if none is.",
    _inf,
    ("minnumf",),
    (_FLOAT,),
    _arith.MinnumfOp,
    of_integers="min",
    is_idempotent=True,
    adjoint=_shared,
)
_and = _Kind("and", "All bits that each element has.", -1, variants=(_SIGNED,), is_idempotent=True)
_or = _Kind("or", "All bits that an element has.", 0, variants=(_SIGNED,), is_idempotent=True)
_xor = _Kind("xor", "The parity of each bit.", 0, variants=(_SIGNED,))
