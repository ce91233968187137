"""The operations of CHLO, the functions of mathematics that clients of StableHLO use beside it."""

from __future__ import annotations

from glow_mlir.dialects.stablehlo.operation import StablehloOp, operation
from glow_mlir.dialects.stablehlo.rules import BROADCASTS

FUNCTIONS = (
    "acos acosh _asin_acos_kernel asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc lgamma"
    " sinh square tan"
)
"""The operations with one operand and a result of its type."""

PREDICATES = "is_inf is_neg_inf is_pos_inf"
"""The operations with one operand and a result of i1."""

PAIRS = "mulhi next_after polygamma zeta"
"""The operations on two tensors of one type."""

_PAIR_NAMES = {"next_after": "x y", "polygamma": "n x", "zeta": "x q"}

OPERATIONS: tuple[type[StablehloOp], ...] = (
    *(operation(f"chlo.{name}", "operand") for name in FUNCTIONS.split()),
    *(operation(f"chlo.{name}", "operand") for name in PREDICATES.split()),
    *(operation(f"chlo.{name}", _PAIR_NAMES.get(name, "lhs rhs")) for name in PAIRS.split()),
    *(operation(f"chlo.broadcast_{name}", "lhs rhs", "broadcast_dimensions:i64s?") for name in BROADCASTS.split()),
    operation(
        "chlo.broadcast_compare",
        "lhs rhs",
        "comparison_direction:chlo_direction broadcast_dimensions:i64s? compare_type:chlo_comparison?",
    ),
    operation("chlo.broadcast_select", "pred on_true on_false"),
    operation("chlo.constant", "", "value:elements"),
    operation("chlo.constant_like", "operand", "value:any"),
    operation("chlo.top_k", "operand", "k:i64", "values indices"),
    operation(
        "chlo.ragged_dot", "lhs rhs group_sizes", "ragged_dot_dimension_numbers:ragged_dot precision_config:list?"
    ),
    operation(
        "chlo.scan",
        "inputs* inits*",
        "dimension:i64 scan_dim_size:i64? is_reverse:bool? is_associative:any?",
        "outputs* carries*",
        "body",
        has_segments=True,
    ),
)
"""All operations of CHLO."""
