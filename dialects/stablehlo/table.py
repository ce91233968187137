"""The operations of StableHLO 1.x: operands, properties, results and regions, as its specification names them."""

from __future__ import annotations

from glow_mlir.dialects.stablehlo.operation import StablehloOp, operation

FUNCTIONS = (
    "abs cbrt ceil cosine exponential exponential_minus_one floor imag log log_plus_one logistic negate not"
    " popcnt count_leading_zeros real round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh"
    " convert bitcast_convert reshape is_finite uniform_dequantize uniform_quantize"
)
"""The operations with one operand and no property but the accuracy."""

ARITHMETIC = (
    "add and atan2 divide maximum minimum multiply or power remainder shift_left shift_right_arithmetic"
    " shift_right_logical subtract xor"
)
"""The operations on two tensors of one type."""

_ACCURATE = "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh".split()


def _function(name: str) -> type[StablehloOp]:
    """An operation with one operand."""
    accuracy = "result_accuracy:any?" if name in _ACCURATE else ""
    return operation(f"stablehlo.{name}", "operand", accuracy)


_COLLECTIVE = "replica_groups:dense channel_handle:channel?"
_CONVOLUTION = (
    "window_strides:i64s? padding:dense? lhs_dilation:i64s? rhs_dilation:i64s? window_reversal:bools? "
    "dimension_numbers:conv feature_group_count:i64 batch_group_count:i64 precision_config:list?"
)
_WINDOW = "window_dimensions:i64s window_strides:i64s? base_dilations:i64s? window_dilations:i64s? padding:dense?"
_DYNAMIC_CONVOLUTION = _CONVOLUTION.replace("padding:dense? ", "")

OPERATIONS: tuple[type[StablehloOp], ...] = (
    *map(_function, FUNCTIONS.split()),
    *(operation(f"stablehlo.{name}", "lhs rhs", "") for name in ARITHMETIC.split()),
    # Pairs and choices
    operation(
        "stablehlo.compare",
        "lhs rhs",
        "comparison_direction:direction compare_type:comparison?",
    ),
    operation("stablehlo.complex", "lhs rhs", ""),
    operation("stablehlo.select", "pred on_true on_false"),
    operation("stablehlo.clamp", "min operand max"),
    operation("stablehlo.reduce_precision", "operand", "exponent_bits:i64 mantissa_bits:i64"),
    # Constants
    operation("stablehlo.constant", "", "value:elements"),
    operation("stablehlo.iota", "", "iota_dimension:i64"),
    operation("stablehlo.dynamic_iota", "output_shape", "iota_dimension:i64"),
    # Shapes and parts
    operation("stablehlo.broadcast", "operand", "broadcast_sizes:i64s"),
    operation("stablehlo.broadcast_in_dim", "operand", "broadcast_dimensions:i64s"),
    operation(
        "stablehlo.dynamic_broadcast_in_dim",
        "operand output_dimensions",
        "broadcast_dimensions:i64s known_expanding_dimensions:i64s? known_nonexpanding_dimensions:i64s?",
    ),
    operation("stablehlo.dynamic_reshape", "operand output_shape"),
    operation("stablehlo.transpose", "operand", "permutation:i64s"),
    operation("stablehlo.reverse", "operand", "dimensions:i64s"),
    operation("stablehlo.concatenate", "inputs*", "dimension:i64"),
    operation(
        "stablehlo.slice",
        "operand",
        "start_indices:i64s limit_indices:i64s strides:i64s",
    ),
    operation("stablehlo.dynamic_slice", "operand start_indices*", "slice_sizes:i64s"),
    operation("stablehlo.dynamic_update_slice", "operand update start_indices*"),
    operation("stablehlo.real_dynamic_slice", "operand start_indices limit_indices strides"),
    operation(
        "stablehlo.pad",
        "operand padding_value",
        "edge_padding_low:i64s edge_padding_high:i64s interior_padding:i64s",
    ),
    operation("stablehlo.dynamic_pad", "operand padding_value edge_padding_low edge_padding_high interior_padding"),
    operation(
        "stablehlo.gather",
        "operand start_indices",
        "dimension_numbers:gather slice_sizes:i64s indices_are_sorted:bool?",
    ),
    operation(
        "stablehlo.dynamic_gather",
        "operand start_indices slice_sizes",
        "dimension_numbers:gather indices_are_sorted:bool?",
    ),
    operation("stablehlo.torch_index_select", "operand index", "dim:i64 batch_dims:i64"),
    operation("stablehlo.get_dimension_size", "operand", "dimension:i64"),
    operation("stablehlo.set_dimension_size", "operand size", "dimension:i64"),
    # Products
    operation("stablehlo.dot", "lhs rhs", "precision_config:list?"),
    operation(
        "stablehlo.dot_general", "lhs rhs", "dot_dimension_numbers:dot precision_config:list? algorithm:dot_algorithm?"
    ),
    operation("stablehlo.einsum", "lhs rhs", "einsum_config:string"),
    operation("stablehlo.unary_einsum", "operand", "einsum_config:string"),
    operation("stablehlo.convolution", "lhs rhs", _CONVOLUTION),
    operation("stablehlo.dynamic_conv", "lhs rhs padding", _DYNAMIC_CONVOLUTION),
    operation("stablehlo.cholesky", "a", "lower:bool?"),
    operation(
        "stablehlo.triangular_solve", "a b", "left_side:bool lower:bool unit_diagonal:bool transpose_a:transpose"
    ),
    operation("stablehlo.fft", "operand", "fft_type:fft_type fft_length:i64s"),
    # Normalization
    operation(
        "stablehlo.batch_norm_inference", "operand scale offset mean variance", "epsilon:float feature_index:i64"
    ),
    operation(
        "stablehlo.batch_norm_training",
        "operand scale offset",
        "epsilon:float feature_index:i64",
        "output batch_mean batch_var",
    ),
    operation(
        "stablehlo.batch_norm_grad",
        "operand scale mean variance grad_output",
        "epsilon:float feature_index:i64",
        "grad_operand grad_scale grad_offset",
    ),
    # With regions
    operation("stablehlo.reduce", "inputs* init_values*", "dimensions:i64s", "results*", "body"),
    operation("stablehlo.reduce_window", "inputs* init_values*", _WINDOW, "results*", "body"),
    operation(
        "stablehlo.scatter",
        "inputs* scatter_indices updates*",
        "scatter_dimension_numbers:scatter indices_are_sorted:bool? unique_indices:bool?",
        "results*",
        "update_computation",
    ),
    operation(
        "stablehlo.select_and_scatter",
        "operand source init_value",
        "window_dimensions:i64s? window_strides:i64s? padding:dense?",
        "result",
        "select scatter",
    ),
    operation("stablehlo.sort", "inputs*", "dimension:i64? is_stable:bool?", "results*", "comparator"),
    operation("stablehlo.map", "inputs*", "dimensions:i64s", "result", "computation"),
    operation("stablehlo.while", "operand*", "", "results*", "cond body"),
    operation("stablehlo.if", "pred", "", "results*", "true_branch false_branch"),
    operation("stablehlo.case", "index", "", "results*", "branches*"),
    operation("stablehlo.return", "results_*", "", "", is_terminator=True),
    # Random numbers
    operation("stablehlo.rng", "a b shape", "rng_distribution:rng_distribution", is_pure=False),
    operation("stablehlo.rng_bit_generator", "initial_state", "rng_algorithm:rng_algorithm", "output_state output"),
    # Calls
    operation(
        "stablehlo.custom_call",
        "inputs*",
        "call_target_name:string has_side_effect:bool? backend_config:any? api_version:i64? called_computations:list? "
        "operand_layouts:list? result_layouts:list? output_operand_aliases:list?",
        "results*",
        is_pure=False,
    ),
    operation(
        "stablehlo.composite",
        "inputs*",
        "name:string composite_attributes:dict? decomposition:symbol version:i64?",
        "results*",
        "composite_regions*",
        is_pure=False,
    ),
    # Plumbing
    operation("stablehlo.optimization_barrier", "operand*", "", "results*"),
    operation("stablehlo.tuple", "val*"),
    operation("stablehlo.get_tuple_element", "operand", "index:i64"),
    operation("stablehlo.after_all", "inputs*"),
    operation("stablehlo.create_token"),
    operation("stablehlo.partition_id"),
    operation("stablehlo.replica_id"),
    # Other devices
    operation(
        "stablehlo.all_gather", "operands*", f"all_gather_dim:i64 {_COLLECTIVE} use_global_device_ids:any?", "results*"
    ),
    operation(
        "stablehlo.all_reduce", "operands*", f"{_COLLECTIVE} use_global_device_ids:any?", "results*", "computation"
    ),
    operation(
        "stablehlo.all_to_all",
        "operands*",
        f"split_dimension:i64 concat_dimension:i64 split_count:i64 {_COLLECTIVE}",
        "results*",
    ),
    operation("stablehlo.async_start", "operands*", "", "result", "body"),
    operation("stablehlo.async_done", "operand", "", "results*"),
    operation("stablehlo.collective_broadcast", "operand", _COLLECTIVE),
    operation("stablehlo.collective_permute", "operand", "source_target_pairs:dense channel_handle:channel?"),
    operation("stablehlo.cross-replica-sum", "operand", "replica_groups:dense"),
    operation(
        "stablehlo.reduce_scatter",
        "operand",
        f"scatter_dimension:i64 {_COLLECTIVE} use_global_device_ids:any?",
        "result",
        "computation",
    ),
    operation("stablehlo.infeed", "token", "infeed_config:string? layout:list?", "results*", is_pure=False),
    operation("stablehlo.outfeed", "inputs* token", "outfeed_config:string?", is_pure=False),
    operation(
        "stablehlo.send",
        "inputs* token",
        "channel_handle:channel is_host_transfer:bool? source_target_pairs:dense?",
        is_pure=False,
    ),
    operation(
        "stablehlo.recv",
        "token",
        "channel_handle:channel is_host_transfer:bool? source_target_pairs:dense?",
        "results*",
        is_pure=False,
    ),
)
"""All operations of StableHLO."""
