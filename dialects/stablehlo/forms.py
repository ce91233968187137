"""Operation → its readable form. Operations that are not here have none but MLIR's generic one, in OpenXLA too."""

from __future__ import annotations

from collections.abc import Mapping

from glow_mlir.dialects.stablehlo import region_syntax, special_syntax
from glow_mlir.dialects.stablehlo.rules import BROADCASTS
from glow_mlir.dialects.stablehlo.special_syntax import SpecialForm
from glow_mlir.dialects.stablehlo.syntax import Form, form

_SAME = (
    "abs cbrt ceil convert cosine count_leading_zeros exponential exponential_minus_one floor imag is_finite log"
    " log_plus_one logistic negate not popcnt real round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan"
    " tanh add and atan2 divide maximum minimum multiply or power remainder shift_left shift_right_arithmetic"
    " shift_right_logical subtract xor clamp after_all"
)

_FUNCTION = (
    "bitcast_convert dynamic_pad dynamic_reshape dynamic_update_slice real_dynamic_slice reshape"
    " uniform_dequantize uniform_quantize"
)

_DOT = (
    "batching_dims=dot_dimension_numbers:pair? contracting_dims=dot_dimension_numbers:pair"
    " precision=precision_config:precision? algorithm=algorithm:algorithm?"
)

_STABLEHLO: Mapping[str, Form | SpecialForm] = {
    **dict.fromkeys(_SAME.split(), form(types="same")),
    **dict.fromkeys(_FUNCTION.split(), form()),
    "broadcast": form("sizes=broadcast_sizes:i64s"),
    "broadcast_in_dim": form("dims=broadcast_dimensions:i64s"),
    "cholesky": form("lower=lower:bool?", "same"),
    "compare": form(lead="comparison_direction:direction", tail="compare_type:comparison"),
    "complex": form(types="complex"),
    "composite": special_syntax.COMPOSITE,
    "concatenate": form("dim=dimension:i64"),
    "constant": special_syntax.CONSTANT,
    "convolution": special_syntax.CONVOLUTION,
    "create_token": form(types="results"),
    "custom_call": special_syntax.CUSTOM_CALL,
    "dot": form("precision=precision_config:precision?"),
    "dot_general": form(_DOT),
    "dynamic_broadcast_in_dim": form("dims=broadcast_dimensions:i64s"),
    "dynamic_iota": form("dim=iota_dimension:i64"),
    "dynamic_slice": form("sizes=slice_sizes:i64s"),
    "einsum": form("config=einsum_config:string"),
    "fft": form("type=fft_type:fft_type length=fft_length:i64s"),
    "get_dimension_size": form("dim=dimension:i64"),
    "get_tuple_element": special_syntax.TUPLE_ELEMENT,
    "iota": form("dim=iota_dimension:i64", "results"),
    "optimization_barrier": form(types="pairs", has_empty=True),
    "pad": form("low=edge_padding_low:i64s high=edge_padding_high:i64s interior=interior_padding:i64s"),
    "partition_id": form(types="results"),
    "reduce": region_syntax.REDUCE,
    "reduce_precision": form("format=exponent_bits+mantissa_bits:format", "same"),
    "replica_id": form(types="results"),
    "return": form(types="operands"),
    "reverse": form("dims=dimensions:i64s", "same"),
    "rng": form("distribution=rng_distribution:rng_distribution"),
    "rng_bit_generator": form("algorithm=rng_algorithm:rng_algorithm"),
    "select": form(types="select"),
    "set_dimension_size": form("dim=dimension:i64"),
    "slice": special_syntax.SLICE,
    "transpose": form("dims=permutation:i64s"),
    "tuple": form(types="tuple"),
    "unary_einsum": form("config=einsum_config:string"),
    "while": region_syntax.WHILE,
}

_ARROW = (
    "_asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf"
    " is_neg_inf is_pos_inf lgamma mulhi next_after polygamma sinh square tan zeta"
)

_CHLO: Mapping[str, Form | SpecialForm] = {
    **dict.fromkeys(_ARROW.split(), form(types="arrow")),
    **{f"broadcast_{name}": form() for name in (*BROADCASTS.split(), "compare", "select")},
    "constant": special_syntax.CONSTANT,
    "scan": region_syntax.SCAN,
    "top_k": special_syntax.TOP_K,
}

FORMS: Mapping[str, Form | SpecialForm] = {
    **{f"stablehlo.{name}": each for name, each in _STABLEHLO.items()},
    **{f"chlo.{name}": each for name, each in _CHLO.items()},
}
"""Operation → its readable form."""
