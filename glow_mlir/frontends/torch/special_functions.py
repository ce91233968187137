"""PyTorch's special functions: error functions, the Gamma function, Bessel functions and related ones."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor
from glow_mlir.frontends.builder import bessel_functions, special_functions
from glow_mlir.frontends.torch.formulas import Formula, computed, exactly, formula_operator
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode

FORMULAS: Mapping[str, Formula] = {
    "digamma.default": special_functions.digamma,
    "erfc.default": special_functions.erfc,
    "erfinv.default": special_functions.erfinv,
    "i0.default": bessel_functions.bessel_i0,
    "lgamma.default": special_functions.lgamma,
    "special_erfc.default": special_functions.erfc,
    "special_erfcx.default": special_functions.scaled_erfc,
    "special_i0e.default": bessel_functions.scaled_bessel_i0,
    "special_i1.default": bessel_functions.bessel_i1,
    "special_i1e.default": bessel_functions.scaled_bessel_i1,
    "special_modified_bessel_i0.default": bessel_functions.bessel_i0,
    "special_modified_bessel_i1.default": bessel_functions.bessel_i1,
    "special_ndtri.default": special_functions.normal_quantile,
    "special_spherical_bessel_j0.default": bessel_functions.spherical_bessel_j0,
}
"""Operator → its formula, which is computed in higher precision than the result."""

for _name, _formula in FORMULAS.items():
    formula_operator(_name, is_exact=True)(_formula)


@torch_operator("polygamma.default")
def polygamma(node: TorchNode, order: int, value: SSAValue) -> SSAValue:
    """A derivative of digamma."""

    def formula(x: Tensor) -> Tensor:
        return special_functions.polygamma(order, x)

    return computed(node, formula, value, element=exactly(node))
