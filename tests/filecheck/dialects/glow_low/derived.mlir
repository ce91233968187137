// Every instruction that is derived from an operator of these families, with and without optional operands, printed and
// parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

// CHECK-LABEL: glow_low.func @elementwise_unary_arithmetic(
glow_low.func @elementwise_unary_arithmetic(@in %x: memref<2x3xf32>) {
  %out = glow_low.alloc : memref<2x3xf32>
  // CHECK: glow_low.abs @out %out, @in %x
  glow_low.abs @out %out, @in %x
  // CHECK: glow_low.neg @out %out, @in %x
  glow_low.neg @out %out, @in %x
  // CHECK: glow_low.sign @out %out, @in %x
  glow_low.sign @out %out, @in %x
  // CHECK: glow_low.reciprocal @out %out, @in %x
  glow_low.reciprocal @out %out, @in %x
  // CHECK: glow_low.sqrt @out %out, @in %x
  glow_low.sqrt @out %out, @in %x
  // CHECK: glow_low.exp @out %out, @in %x
  glow_low.exp @out %out, @in %x
  // CHECK: glow_low.log @out %out, @in %x
  glow_low.log @out %out, @in %x
  // CHECK: glow_low.erf @out %out, @in %x
  glow_low.erf @out %out, @in %x
}

// CHECK-LABEL: glow_low.func @elementwise_unary_rounding(
glow_low.func @elementwise_unary_rounding(@in %x: memref<2x3xf32>) {
  %out = glow_low.alloc : memref<2x3xf32>
  // CHECK: glow_low.ceil @out %out, @in %x
  glow_low.ceil @out %out, @in %x
  // CHECK: glow_low.floor @out %out, @in %x
  glow_low.floor @out %out, @in %x
  // CHECK: glow_low.round @out %out, @in %x
  glow_low.round @out %out, @in %x
}

// CHECK-LABEL: glow_low.func @elementwise_unary_trigonometry(
glow_low.func @elementwise_unary_trigonometry(@in %x: memref<2x3xf32>) {
  %out = glow_low.alloc : memref<2x3xf32>
  // CHECK: glow_low.sin @out %out, @in %x
  glow_low.sin @out %out, @in %x
  // CHECK: glow_low.cos @out %out, @in %x
  glow_low.cos @out %out, @in %x
  // CHECK: glow_low.tan @out %out, @in %x
  glow_low.tan @out %out, @in %x
  // CHECK: glow_low.asin @out %out, @in %x
  glow_low.asin @out %out, @in %x
  // CHECK: glow_low.acos @out %out, @in %x
  glow_low.acos @out %out, @in %x
  // CHECK: glow_low.atan @out %out, @in %x
  glow_low.atan @out %out, @in %x
  // CHECK: glow_low.sinh @out %out, @in %x
  glow_low.sinh @out %out, @in %x
  // CHECK: glow_low.cosh @out %out, @in %x
  glow_low.cosh @out %out, @in %x
  // CHECK: glow_low.asinh @out %out, @in %x
  glow_low.asinh @out %out, @in %x
  // CHECK: glow_low.acosh @out %out, @in %x
  glow_low.acosh @out %out, @in %x
  // CHECK: glow_low.atanh @out %out, @in %x
  glow_low.atanh @out %out, @in %x
}

// CHECK-LABEL: glow_low.func @elementwise_unary_integers(
glow_low.func @elementwise_unary_integers(@in %i: memref<2x3xi32>) {
  %out = glow_low.alloc : memref<2x3xi32>
  // CHECK: glow_low.bitwise_not @out %out, @in %i
  glow_low.bitwise_not @out %out, @in %i
}

// CHECK-LABEL: glow_low.func @elementwise_unary_truth(
glow_low.func @elementwise_unary_truth(@in %x: memref<2x3xf32>, @in %p: memref<2x3xi1>) {
  %out = glow_low.alloc : memref<2x3xi1>
  // CHECK: glow_low.not @out %out, @in %p
  glow_low.not @out %out, @in %p
  // CHECK: glow_low.is_nan @out %out, @in %x
  glow_low.is_nan @out %out, @in %x
  // CHECK: glow_low.is_inf @out %out, @in %x
  glow_low.is_inf @out %out, @in %x
}

// CHECK-LABEL: glow_low.func @elementwise_unary_casts(
glow_low.func @elementwise_unary_casts(@in %x: memref<2x3xf32>) {
  %out = glow_low.alloc : memref<2x3xi32>
  // CHECK: glow_low.cast @out %out, @in %x {to = i32}
  glow_low.cast @out %out, @in %x {to = i32}
  // CHECK: glow_low.bit_cast @out %out, @in %x {to = i32}
  glow_low.bit_cast @out %out, @in %x {to = i32}
}

// CHECK-LABEL: glow_low.func @activations_without_parameters(
glow_low.func @activations_without_parameters(@in %x: memref<2x3xf32>, @in %y: memref<3xf32>) {
  %out = glow_low.alloc : memref<2x3xf32>
  // CHECK: glow_low.relu @out %out, @in %x
  glow_low.relu @out %out, @in %x
  // CHECK: glow_low.sigmoid @out %out, @in %x
  glow_low.sigmoid @out %out, @in %x
  // CHECK: glow_low.tanh @out %out, @in %x
  glow_low.tanh @out %out, @in %x
  // CHECK: glow_low.hard_swish @out %out, @in %x
  glow_low.hard_swish @out %out, @in %x
  // CHECK: glow_low.softplus @out %out, @in %x
  glow_low.softplus @out %out, @in %x
  // CHECK: glow_low.softsign @out %out, @in %x
  glow_low.softsign @out %out, @in %x
  // CHECK: glow_low.mish @out %out, @in %x
  glow_low.mish @out %out, @in %x
  // CHECK: glow_low.prelu @out %out, @in %x, @in %y
  glow_low.prelu @out %out, @in %x, @in %y
}

// CHECK-LABEL: glow_low.func @activations_defaults(
glow_low.func @activations_defaults(@in %x: memref<2x3xf32>) {
  %out = glow_low.alloc : memref<2x3xf32>
  // CHECK: glow_low.leaky_relu @out %out, @in %x
  glow_low.leaky_relu @out %out, @in %x
  // CHECK: glow_low.elu @out %out, @in %x
  glow_low.elu @out %out, @in %x
  // CHECK: glow_low.selu @out %out, @in %x
  glow_low.selu @out %out, @in %x
  // CHECK: glow_low.celu @out %out, @in %x
  glow_low.celu @out %out, @in %x
  // CHECK: glow_low.hard_sigmoid @out %out, @in %x
  glow_low.hard_sigmoid @out %out, @in %x
  // CHECK: glow_low.swish @out %out, @in %x
  glow_low.swish @out %out, @in %x
  // CHECK: glow_low.gelu @out %out, @in %x
  glow_low.gelu @out %out, @in %x
  // CHECK: glow_low.thresholded_relu @out %out, @in %x
  glow_low.thresholded_relu @out %out, @in %x
  // CHECK: glow_low.shrink @out %out, @in %x
  glow_low.shrink @out %out, @in %x
}

// CHECK-LABEL: glow_low.func @elementwise_binary_arithmetic(
glow_low.func @elementwise_binary_arithmetic(@in %x: memref<2x3xf32>, @in %y: memref<3xf32>, @in %i: memref<2x3xi32>, @in %j: memref<3xi32>) {
  %out = glow_low.alloc : memref<2x3xf32>
  // CHECK: glow_low.add @out %out, @in %x, @in %y
  glow_low.add @out %out, @in %x, @in %y
  // CHECK: glow_low.sub @out %out, @in %x, @in %y
  glow_low.sub @out %out, @in %x, @in %y
  // CHECK: glow_low.mul @out %out, @in %x, @in %y
  glow_low.mul @out %out, @in %x, @in %y
  // CHECK: glow_low.div @out %out, @in %x, @in %y
  glow_low.div @out %out, @in %x, @in %y
  // CHECK: glow_low.mod @out %out, @in %x, @in %y
  glow_low.mod @out %out, @in %x, @in %y
  // CHECK: glow_low.pow @out %out, @in %x, @in %y
  glow_low.pow @out %out, @in %x, @in %y
  // CHECK: glow_low.max @out %out, @in %x, @in %y
  glow_low.max @out %out, @in %x, @in %y
  %out1 = glow_low.alloc : memref<2x3xi32>
  // CHECK: glow_low.min @out %out1, @in %i, @in %j
  glow_low.min @out %out1, @in %i, @in %j
}

// CHECK-LABEL: glow_low.func @elementwise_binary_comparison(
glow_low.func @elementwise_binary_comparison(@in %x: memref<2x3xf32>, @in %y: memref<3xf32>) {
  %out = glow_low.alloc : memref<2x3xi1>
  // CHECK: glow_low.equal @out %out, @in %x, @in %y
  glow_low.equal @out %out, @in %x, @in %y
  // CHECK: glow_low.less @out %out, @in %x, @in %y
  glow_low.less @out %out, @in %x, @in %y
  // CHECK: glow_low.less_or_equal @out %out, @in %x, @in %y
  glow_low.less_or_equal @out %out, @in %x, @in %y
  // CHECK: glow_low.greater @out %out, @in %x, @in %y
  glow_low.greater @out %out, @in %x, @in %y
  // CHECK: glow_low.greater_or_equal @out %out, @in %x, @in %y
  glow_low.greater_or_equal @out %out, @in %x, @in %y
}

// CHECK-LABEL: glow_low.func @elementwise_binary_logic(
glow_low.func @elementwise_binary_logic(@in %p: memref<2x3xi1>, @in %q: memref<3xi1>, @in %i: memref<2x3xi32>, @in %j: memref<3xi32>) {
  %out = glow_low.alloc : memref<2x3xi1>
  // CHECK: glow_low.and @out %out, @in %p, @in %q
  glow_low.and @out %out, @in %p, @in %q
  // CHECK: glow_low.or @out %out, @in %p, @in %q
  glow_low.or @out %out, @in %p, @in %q
  // CHECK: glow_low.xor @out %out, @in %p, @in %q
  glow_low.xor @out %out, @in %p, @in %q
  %out1 = glow_low.alloc : memref<2x3xi32>
  // CHECK: glow_low.bitwise_and @out %out1, @in %i, @in %j
  glow_low.bitwise_and @out %out1, @in %i, @in %j
  // CHECK: glow_low.bitwise_or @out %out1, @in %i, @in %j
  glow_low.bitwise_or @out %out1, @in %i, @in %j
  // CHECK: glow_low.bitwise_xor @out %out1, @in %i, @in %j
  glow_low.bitwise_xor @out %out1, @in %i, @in %j
  // CHECK: glow_low.bit_shift @out %out1, @in %i, @in %j
  glow_low.bit_shift @out %out1, @in %i, @in %j
}

// CHECK-LABEL: glow_low.func @elementwise_binary_choice(
glow_low.func @elementwise_binary_choice(@in %x: memref<2x3xf32>, @in %y: memref<3xf32>, @in %p: memref<2x3xi1>) {
  %out = glow_low.alloc : memref<2x3xf32>
  // CHECK: glow_low.where @out %out, @in %p, @in %x, @in %y
  glow_low.where @out %out, @in %p, @in %x, @in %y
  // CHECK: glow_low.clip @out %out, @in %x, @in %y, @in %y
  glow_low.clip @out %out, @in %x, @in %y, @in %y
  // CHECK: glow_low.clip @out %out, @in %x, @in none, @in %y
  glow_low.clip @out %out, @in %x, @in none, @in %y
  // CHECK: glow_low.clip @out %out, @in %x, @in %y
  glow_low.clip @out %out, @in %x, @in %y
  // CHECK: glow_low.clip @out %out, @in %x
  glow_low.clip @out %out, @in %x
}

// CHECK-LABEL: glow_low.func @convolution_conv(
glow_low.func @convolution_conv(@in %image: memref<1x8x8x4xf32>, @in %filter: memref<6x3x3x4xf32>, @in %bias: memref<6xf32>) {
  %out = glow_low.alloc : memref<1x6x6x6xf32>
  // CHECK: glow_low.conv @out %out, @in %image, @in %filter
  glow_low.conv @out %out, @in %image, @in %filter
  %out1 = glow_low.alloc : memref<1x4x3x6xf32>
  // CHECK: glow_low.conv @out %out1, @in %image, @in %filter, @in %bias {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 2]}
  glow_low.conv @out %out1, @in %image, @in %filter, @in %bias {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 2]}
}

// CHECK-LABEL: glow_low.func @convolution_conv_transpose(
glow_low.func @convolution_conv_transpose(@in %image: memref<1x8x8x4xf32>, @in %up: memref<4x2x2x6xf32>, @in %bias: memref<6xf32>) {
  %out = glow_low.alloc : memref<1x9x9x6xf32>
  // CHECK: glow_low.conv_transpose @out %out, @in %image, @in %up
  glow_low.conv_transpose @out %out, @in %image, @in %up
  %out1 = glow_low.alloc : memref<1x17x16x6xf32>
  // CHECK: glow_low.conv_transpose @out %out1, @in %image, @in %up, @in %bias {strides = [2, 2], pads = [1, 0, 0, 1], dilations = [2, 1], output_padding = [1, 1]}
  glow_low.conv_transpose @out %out1, @in %image, @in %up, @in %bias {strides = [2, 2], pads = [1, 0, 0, 1], dilations = [2, 1], output_padding = [1, 1]}
}

// CHECK-LABEL: glow_low.func @linear_matmul(
glow_low.func @linear_matmul(@in %a: memref<5x2x3xf32>, @in %b: memref<3x4xf32>, @in %bias: memref<4xf32>) {
  %out = glow_low.alloc : memref<5x2x4xf32>
  // CHECK: glow_low.matmul @out %out, @in %a, @in %b
  glow_low.matmul @out %out, @in %a, @in %b
  // CHECK: glow_low.matmul @out %out, @in %a, @in %b, @in %bias
  glow_low.matmul @out %out, @in %a, @in %b, @in %bias
}

// CHECK-LABEL: glow_low.func @linear_fully_connected(
glow_low.func @linear_fully_connected(@in %m: memref<2x3xf32>, @in %b: memref<3x4xf32>, @in %bias: memref<4xf32>) {
  %out = glow_low.alloc : memref<2x4xf32>
  // CHECK: glow_low.fully_connected @out %out, @in %m, @in %b, @in %bias
  glow_low.fully_connected @out %out, @in %m, @in %b, @in %bias
}

// CHECK-LABEL: glow_low.func @linear_others(
glow_low.func @linear_others(@in %a: memref<5x2x3xf32>, @in %b: memref<3x4xf32>, @in %square: memref<5x4x4xf32>) {
  %out = glow_low.alloc : memref<5x2x4xf32>
  // CHECK: glow_low.einsum @out %out, @in %a, @in %b {equation = "abc,cd->abd"}
  glow_low.einsum @out %out, @in %a, @in %b {equation = "abc,cd->abd"}
  %out1 = glow_low.alloc : memref<5xf32>
  // CHECK: glow_low.det @out %out1, @in %square
  glow_low.det @out %out1, @in %square
}

// CHECK-LABEL: glow_low.func @pooling_pools(
glow_low.func @pooling_pools(@in %image: memref<1x9x9x4xf32>, @in %bytes: memref<1x9x9x4xui8>) {
  %out = glow_low.alloc : memref<1x8x8x4xf32>
  // CHECK: glow_low.max_pool @out %out, @in %image {kernel_shape = [2, 2]}
  glow_low.max_pool @out %out, @in %image {kernel_shape = [2, 2]}
  %out1 = glow_low.alloc : memref<1x4x4x4xf32>
  // CHECK: glow_low.avg_pool @out %out1, @in %image {kernel_shape = [2, 2], strides = [2, 2]}
  glow_low.avg_pool @out %out1, @in %image {kernel_shape = [2, 2], strides = [2, 2]}
  %out2 = glow_low.alloc : memref<1x8x8x4xi32>
  // CHECK: glow_low.sum_pool @out %out2, @in %bytes {kernel_shape = [2, 2]}
  glow_low.sum_pool @out %out2, @in %bytes {kernel_shape = [2, 2]}
  // CHECK: glow_low.lp_pool @out %out, @in %image {kernel_shape = [2, 2]}
  glow_low.lp_pool @out %out, @in %image {kernel_shape = [2, 2]}
}

// CHECK-LABEL: glow_low.func @attention(
glow_low.func @attention(@in %x: memref<2x5x6xf32>, @in %mask: memref<5x5xf32>) {
  %out = glow_low.alloc : memref<2x5x6xf32>
  // CHECK: glow_low.attention @out %out, @in %x, @in %x, @in %x {causal = true}
  glow_low.attention @out %out, @in %x, @in %x, @in %x {causal = true}
  // CHECK: glow_low.attention @out %out, @in %x, @in %x, @in %x, @in %mask {scale = 0.5}
  glow_low.attention @out %out, @in %x, @in %x, @in %x, @in %mask {scale = 0.5}
}

// CHECK-LABEL: glow_low.func @normalization_along_an_axis(
glow_low.func @normalization_along_an_axis(@in %x: memref<2x5x5x6xf32>) {
  %out = glow_low.alloc : memref<2x5x5x6xf32>
  // CHECK: glow_low.softmax @out %out, @in %x
  glow_low.softmax @out %out, @in %x
  // CHECK: glow_low.log_softmax @out %out, @in %x
  glow_low.log_softmax @out %out, @in %x
  // CHECK: glow_low.hardmax @out %out, @in %x
  glow_low.hardmax @out %out, @in %x
}

// CHECK-LABEL: glow_low.func @normalization_statistics(
glow_low.func @normalization_statistics(@in %x: memref<2x5x5x6xf32>, @in %c: memref<6xf32>) {
  %out = glow_low.alloc : memref<2x5x5x6xf32>
  // CHECK: glow_low.batch_normalization @out %out, @in %x, @in %c, @in %c, @in %c, @in %c
  glow_low.batch_normalization @out %out, @in %x, @in %c, @in %c, @in %c, @in %c
  // CHECK: glow_low.instance_normalization @out %out, @in %x, @in %c, @in %c
  glow_low.instance_normalization @out %out, @in %x, @in %c, @in %c
  // CHECK: glow_low.group_normalization @out %out, @in %x, @in %c, @in %c {groups = 3}
  glow_low.group_normalization @out %out, @in %x, @in %c, @in %c {groups = 3}
  // CHECK: glow_low.layer_normalization @out %out, @in %x, @in %c
  glow_low.layer_normalization @out %out, @in %x, @in %c
  // CHECK: glow_low.layer_normalization @out %out, @in %x, @in %c, @in %c {axis = -2, epsilon = 1.0e-12}
  glow_low.layer_normalization @out %out, @in %x, @in %c, @in %c {axis = -2, epsilon = 1.0e-12}
  // CHECK: glow_low.rms_normalization @out %out, @in %x, @in %c
  glow_low.rms_normalization @out %out, @in %x, @in %c
}

// CHECK-LABEL: glow_low.func @normalization_neighbours(
glow_low.func @normalization_neighbours(@in %x: memref<2x5x5x6xf32>) {
  %out = glow_low.alloc : memref<2x5x5x6xf32>
  // CHECK: glow_low.lrn @out %out, @in %x {size = 5}
  glow_low.lrn @out %out, @in %x {size = 5}
}

// CHECK-LABEL: glow_low.func @reductions_with_unit_axes(
glow_low.func @reductions_with_unit_axes(@in %x: memref<2x5x6xf32>) {
  %out = glow_low.alloc : memref<2x1x1xf32>
  // CHECK: glow_low.reduce_sum @out %out, @in %x {axes = [1, 2]}
  glow_low.reduce_sum @out %out, @in %x {axes = [1, 2]}
  // CHECK: glow_low.reduce_mean @out %out, @in %x {axes = [1, 2]}
  glow_low.reduce_mean @out %out, @in %x {axes = [1, 2]}
  // CHECK: glow_low.reduce_prod @out %out, @in %x {axes = [1, 2]}
  glow_low.reduce_prod @out %out, @in %x {axes = [1, 2]}
  // CHECK: glow_low.reduce_max @out %out, @in %x {axes = [1, 2]}
  glow_low.reduce_max @out %out, @in %x {axes = [1, 2]}
  // CHECK: glow_low.reduce_min @out %out, @in %x {axes = [1, 2]}
  glow_low.reduce_min @out %out, @in %x {axes = [1, 2]}
  // CHECK: glow_low.reduce_l1 @out %out, @in %x {axes = [1, 2]}
  glow_low.reduce_l1 @out %out, @in %x {axes = [1, 2]}
  // CHECK: glow_low.reduce_l2 @out %out, @in %x {axes = [1, 2]}
  glow_low.reduce_l2 @out %out, @in %x {axes = [1, 2]}
  // CHECK: glow_low.reduce_sum_square @out %out, @in %x {axes = [1, 2]}
  glow_low.reduce_sum_square @out %out, @in %x {axes = [1, 2]}
  // CHECK: glow_low.reduce_log_sum @out %out, @in %x {axes = [1, 2]}
  glow_low.reduce_log_sum @out %out, @in %x {axes = [1, 2]}
  // CHECK: glow_low.reduce_log_sum_exp @out %out, @in %x {axes = [1, 2]}
  glow_low.reduce_log_sum_exp @out %out, @in %x {axes = [1, 2]}
}

// CHECK-LABEL: glow_low.func @reductions_positions(
glow_low.func @reductions_positions(@in %x: memref<2x5x6xf32>) {
  %out = glow_low.alloc : memref<2x1x6xi64>
  // CHECK: glow_low.arg_max @out %out, @in %x {axis = 1}
  glow_low.arg_max @out %out, @in %x {axis = 1}
  %out1 = glow_low.alloc : memref<1x5x6xi64>
  // CHECK: glow_low.arg_min @out %out1, @in %x {axis = 0}
  glow_low.arg_min @out %out1, @in %x {axis = 0}
}

// CHECK-LABEL: glow_low.func @reductions_running(
glow_low.func @reductions_running(@in %x: memref<2x5x6xf32>) {
  %out = glow_low.alloc : memref<2x5x6xf32>
  // CHECK: glow_low.cum_sum @out %out, @in %x {axis = 1}
  glow_low.cum_sum @out %out, @in %x {axis = 1}
  // CHECK: glow_low.cum_prod @out %out, @in %x {axis = 0}
  glow_low.cum_prod @out %out, @in %x {axis = 0}
}

// CHECK-LABEL: glow_low.func @reductions_largest(
glow_low.func @reductions_largest(@in %x: memref<2x5x6xf32>) {
  %out = glow_low.alloc : memref<2x5x3xf32>
  %out1 = glow_low.alloc : memref<2x5x3xi64>
  // CHECK: glow_low.top_k @out %out, @out %out1, @in %x {k = 3}
  glow_low.top_k @out %out, @out %out1, @in %x {k = 3}
}

// CHECK-LABEL: glow_low.func @recurrent_lstm(
glow_low.func @recurrent_lstm(@in %x: memref<7x2x5xf32>, @in %xb: memref<2x7x5xf32>, @in %len: memref<2xi32>, @in %w4: memref<1x12x5xf32>, @in %r4: memref<1x12x3xf32>, @in %b4: memref<1x24xf32>, @in %s1: memref<1x2x3xf32>, @in %sb: memref<2x1x3xf32>, @in %p4: memref<1x9xf32>) {
  %out = glow_low.alloc : memref<7x1x2x3xf32>
  %out1 = glow_low.alloc : memref<1x2x3xf32>
  %out2 = glow_low.alloc : memref<1x2x3xf32>
  // CHECK: glow_low.lstm @out %out, @out %out1, @out %out2, @in %x, @in %w4, @in %r4
  glow_low.lstm @out %out, @out %out1, @out %out2, @in %x, @in %w4, @in %r4
  // CHECK: glow_low.lstm @out %out, @out %out1, @out %out2, @in %x, @in %w4, @in %r4, @in %b4, @in %len, @in %s1, @in %s1, @in %p4 {input_forget = true, clip = 3.0}
  glow_low.lstm @out %out, @out %out1, @out %out2, @in %x, @in %w4, @in %r4, @in %b4, @in %len, @in %s1, @in %s1, @in %p4 {input_forget = true, clip = 3.0}
  %out3 = glow_low.alloc : memref<2x7x1x3xf32>
  %out4 = glow_low.alloc : memref<2x1x3xf32>
  %out5 = glow_low.alloc : memref<2x1x3xf32>
  // CHECK: glow_low.lstm @out %out3, @out %out4, @out %out5, @in %xb, @in %w4, @in %r4, @in none, @in none, @in %sb, @in %sb {direction = "reverse", batch_first = true}
  glow_low.lstm @out %out3, @out %out4, @out %out5, @in %xb, @in %w4, @in %r4, @in none, @in none, @in %sb, @in %sb {direction = "reverse", batch_first = true}
}

// CHECK-LABEL: glow_low.func @recurrent_gru(
glow_low.func @recurrent_gru(@in %x: memref<7x2x5xf32>, @in %len: memref<2xi32>, @in %w3: memref<1x9x5xf32>, @in %r3: memref<1x9x3xf32>, @in %b3: memref<1x18xf32>, @in %s1: memref<1x2x3xf32>) {
  %out = glow_low.alloc : memref<7x1x2x3xf32>
  %out1 = glow_low.alloc : memref<1x2x3xf32>
  // CHECK: glow_low.gru @out %out, @out %out1, @in %x, @in %w3, @in %r3
  glow_low.gru @out %out, @out %out1, @in %x, @in %w3, @in %r3
  // CHECK: glow_low.gru @out %out, @out %out1, @in %x, @in %w3, @in %r3, @in %b3, @in %len, @in %s1 {direction = "reverse", linear_before_reset = true}
  glow_low.gru @out %out, @out %out1, @in %x, @in %w3, @in %r3, @in %b3, @in %len, @in %s1 {direction = "reverse", linear_before_reset = true}
}

// CHECK-LABEL: glow_low.func @recurrent_rnn(
glow_low.func @recurrent_rnn(@in %x: memref<7x2x5xf32>, @in %len: memref<2xi32>, @in %w1: memref<1x3x5xf32>, @in %r1: memref<1x3x3xf32>, @in %b1: memref<1x6xf32>, @in %s1: memref<1x2x3xf32>) {
  %out = glow_low.alloc : memref<7x1x2x3xf32>
  %out1 = glow_low.alloc : memref<1x2x3xf32>
  // CHECK: glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1
  glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1
  // CHECK: glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1, @in %b1, @in none, @in %s1 {activations = ["relu"], clip = 2.0}
  glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1, @in %b1, @in none, @in %s1 {activations = ["relu"], clip = 2.0}
  // CHECK: glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1, @in none, @in %len
  glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1, @in none, @in %len
}

// CHECK-LABEL: glow_low.func @recurrent_recurrences(
glow_low.func @recurrent_recurrences(@in %g4: memref<7x2x12xf32>, @in %m4: memref<3x12xf32>, @in %g3: memref<7x2x9xf32>, @in %m3: memref<3x9xf32>, @in %g1: memref<7x2x3xf32>, @in %m1: memref<3x3xf32>, @in %h: memref<2x3xf32>, @in %peep: memref<9xf32>, @in %bias: memref<3xf32>, @in %len: memref<2xi32>) {
  %out = glow_low.alloc : memref<7x2x3xf32>
  %out1 = glow_low.alloc : memref<2x3xf32>
  %out2 = glow_low.alloc : memref<2x3xf32>
  // CHECK: glow_low.lstm_recurrence @out %out, @out %out1, @out %out2, @in %g4, @in %m4, @in %h, @in %h
  glow_low.lstm_recurrence @out %out, @out %out1, @out %out2, @in %g4, @in %m4, @in %h, @in %h
  // CHECK: glow_low.lstm_recurrence @out %out, @out %out1, @out %out2, @in %g4, @in %m4, @in %h, @in %h, @in %peep, @in %len {reverse = true, input_forget = true, clip = 3.0}
  glow_low.lstm_recurrence @out %out, @out %out1, @out %out2, @in %g4, @in %m4, @in %h, @in %h, @in %peep, @in %len {reverse = true, input_forget = true, clip = 3.0}
  // CHECK: glow_low.lstm_recurrence @out %out, @out %out1, @out %out2, @in %g4, @in %m4, @in %h, @in %h, @in none, @in %len {activations = ["hard_sigmoid", "tanh", "relu"], alphas = [0.25, 0.0, 0.0], betas = [0.5, 0.0, 0.0]}
  glow_low.lstm_recurrence @out %out, @out %out1, @out %out2, @in %g4, @in %m4, @in %h, @in %h, @in none, @in %len {activations = ["hard_sigmoid", "tanh", "relu"], alphas = [0.25, 0.0, 0.0], betas = [0.5, 0.0, 0.0]}
  // CHECK: glow_low.gru_recurrence @out %out, @out %out1, @in %g3, @in %m3, @in %h
  glow_low.gru_recurrence @out %out, @out %out1, @in %g3, @in %m3, @in %h
  // CHECK: glow_low.gru_recurrence @out %out, @out %out1, @in %g3, @in %m3, @in %h, @in %bias, @in %len {reverse = true}
  glow_low.gru_recurrence @out %out, @out %out1, @in %g3, @in %m3, @in %h, @in %bias, @in %len {reverse = true}
  // CHECK: glow_low.rnn_recurrence @out %out, @out %out1, @in %g1, @in %m1, @in %h
  glow_low.rnn_recurrence @out %out, @out %out1, @in %g1, @in %m1, @in %h
  // CHECK: glow_low.rnn_recurrence @out %out, @out %out1, @in %g1, @in %m1, @in %h, @in %len {activations = ["relu"]}
  glow_low.rnn_recurrence @out %out, @out %out1, @in %g1, @in %m1, @in %h, @in %len {activations = ["relu"]}
}

// CHECK-LABEL: glow_low.func @storage_splat(
glow_low.func @storage_splat(@in %x: memref<4xf32>) {
  %out = glow_low.alloc : memref<4xf32>
  // CHECK: glow_low.splat @out %out {value = 0.5}
  glow_low.splat @out %out {value = 0.5}
  %out1 = glow_low.alloc : memref<i64>
  // CHECK: glow_low.splat @out %out1 {value = 3}
  glow_low.splat @out %out1 {value = 3}
}
