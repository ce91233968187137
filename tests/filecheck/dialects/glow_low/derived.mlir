// Every instruction that is derived from an operator of these families, with and without optional operands, printed and
// parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

glow_high.placeholder @elementwise_unary_x : tensor<2x3xf32> {input}
glow_high.placeholder @elementwise_unary_i : tensor<2x3xi32> {input}
glow_high.placeholder @elementwise_unary_p : tensor<2x3xi1> {input}

// CHECK-LABEL: glow_low.func @elementwise_unary_arithmetic(@elementwise_unary_x)
glow_low.func @elementwise_unary_arithmetic(@elementwise_unary_x) {
  %x = glow_low.weight @elementwise_unary_x : memref<2x3xf32>
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

// CHECK-LABEL: glow_low.func @elementwise_unary_rounding(@elementwise_unary_x)
glow_low.func @elementwise_unary_rounding(@elementwise_unary_x) {
  %x = glow_low.weight @elementwise_unary_x : memref<2x3xf32>
  %out = glow_low.alloc : memref<2x3xf32>
  // CHECK: glow_low.ceil @out %out, @in %x
  glow_low.ceil @out %out, @in %x
  // CHECK: glow_low.floor @out %out, @in %x
  glow_low.floor @out %out, @in %x
  // CHECK: glow_low.round @out %out, @in %x
  glow_low.round @out %out, @in %x
}

// CHECK-LABEL: glow_low.func @elementwise_unary_trigonometry(@elementwise_unary_x)
glow_low.func @elementwise_unary_trigonometry(@elementwise_unary_x) {
  %x = glow_low.weight @elementwise_unary_x : memref<2x3xf32>
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

// CHECK-LABEL: glow_low.func @elementwise_unary_integers(@elementwise_unary_i)
glow_low.func @elementwise_unary_integers(@elementwise_unary_i) {
  %i = glow_low.weight @elementwise_unary_i : memref<2x3xi32>
  %out = glow_low.alloc : memref<2x3xi32>
  // CHECK: glow_low.bitwise_not @out %out, @in %i
  glow_low.bitwise_not @out %out, @in %i
}

// CHECK-LABEL: glow_low.func @elementwise_unary_truth(@elementwise_unary_x, @elementwise_unary_p)
glow_low.func @elementwise_unary_truth(@elementwise_unary_x, @elementwise_unary_p) {
  %x = glow_low.weight @elementwise_unary_x : memref<2x3xf32>
  %p = glow_low.weight @elementwise_unary_p : memref<2x3xi1>
  %out = glow_low.alloc : memref<2x3xi1>
  // CHECK: glow_low.not @out %out, @in %p
  glow_low.not @out %out, @in %p
  // CHECK: glow_low.is_nan @out %out, @in %x
  glow_low.is_nan @out %out, @in %x
  // CHECK: glow_low.is_inf @out %out, @in %x
  glow_low.is_inf @out %out, @in %x
}

// CHECK-LABEL: glow_low.func @elementwise_unary_casts(@elementwise_unary_x)
glow_low.func @elementwise_unary_casts(@elementwise_unary_x) {
  %x = glow_low.weight @elementwise_unary_x : memref<2x3xf32>
  %out = glow_low.alloc : memref<2x3xi32>
  // CHECK: glow_low.cast @out %out, @in %x {to = i32}
  glow_low.cast @out %out, @in %x {to = i32}
  // CHECK: glow_low.bit_cast @out %out, @in %x {to = i32}
  glow_low.bit_cast @out %out, @in %x {to = i32}
}

glow_high.placeholder @activations_x : tensor<2x3xf32> {input}
glow_high.placeholder @activations_y : tensor<3xf32> {input}

// CHECK-LABEL: glow_low.func @activations_without_parameters(@activations_x, @activations_y)
glow_low.func @activations_without_parameters(@activations_x, @activations_y) {
  %x = glow_low.weight @activations_x : memref<2x3xf32>
  %y = glow_low.weight @activations_y : memref<3xf32>
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

// CHECK-LABEL: glow_low.func @activations_defaults(@activations_x)
glow_low.func @activations_defaults(@activations_x) {
  %x = glow_low.weight @activations_x : memref<2x3xf32>
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

glow_high.placeholder @elementwise_binary_x : tensor<2x3xf32> {input}
glow_high.placeholder @elementwise_binary_y : tensor<3xf32> {input}
glow_high.placeholder @elementwise_binary_i : tensor<2x3xi32> {input}
glow_high.placeholder @elementwise_binary_j : tensor<3xi32> {input}
glow_high.placeholder @elementwise_binary_p : tensor<2x3xi1> {input}
glow_high.placeholder @elementwise_binary_q : tensor<3xi1> {input}

// CHECK-LABEL: glow_low.func @elementwise_binary_arithmetic(@elementwise_binary_x, @elementwise_binary_y, @elementwise_binary_i, @elementwise_binary_j)
glow_low.func @elementwise_binary_arithmetic(@elementwise_binary_x, @elementwise_binary_y, @elementwise_binary_i, @elementwise_binary_j) {
  %x = glow_low.weight @elementwise_binary_x : memref<2x3xf32>
  %y = glow_low.weight @elementwise_binary_y : memref<3xf32>
  %i = glow_low.weight @elementwise_binary_i : memref<2x3xi32>
  %j = glow_low.weight @elementwise_binary_j : memref<3xi32>
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

// CHECK-LABEL: glow_low.func @elementwise_binary_comparison(@elementwise_binary_x, @elementwise_binary_y)
glow_low.func @elementwise_binary_comparison(@elementwise_binary_x, @elementwise_binary_y) {
  %x = glow_low.weight @elementwise_binary_x : memref<2x3xf32>
  %y = glow_low.weight @elementwise_binary_y : memref<3xf32>
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

// CHECK-LABEL: glow_low.func @elementwise_binary_logic(@elementwise_binary_p, @elementwise_binary_q, @elementwise_binary_i, @elementwise_binary_j)
glow_low.func @elementwise_binary_logic(@elementwise_binary_p, @elementwise_binary_q, @elementwise_binary_i, @elementwise_binary_j) {
  %p = glow_low.weight @elementwise_binary_p : memref<2x3xi1>
  %q = glow_low.weight @elementwise_binary_q : memref<3xi1>
  %i = glow_low.weight @elementwise_binary_i : memref<2x3xi32>
  %j = glow_low.weight @elementwise_binary_j : memref<3xi32>
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

// CHECK-LABEL: glow_low.func @elementwise_binary_choice(@elementwise_binary_x, @elementwise_binary_y, @elementwise_binary_p)
glow_low.func @elementwise_binary_choice(@elementwise_binary_x, @elementwise_binary_y, @elementwise_binary_p) {
  %x = glow_low.weight @elementwise_binary_x : memref<2x3xf32>
  %y = glow_low.weight @elementwise_binary_y : memref<3xf32>
  %p = glow_low.weight @elementwise_binary_p : memref<2x3xi1>
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

glow_high.placeholder @convolution_image : tensor<1x8x8x4xf32> {input}
glow_high.placeholder @convolution_filter : tensor<6x3x3x4xf32> {input}
glow_high.placeholder @convolution_bias : tensor<6xf32> {input}
glow_high.placeholder @convolution_up : tensor<4x2x2x6xf32> {input}

// CHECK-LABEL: glow_low.func @convolution_conv(@convolution_image, @convolution_filter, @convolution_bias)
glow_low.func @convolution_conv(@convolution_image, @convolution_filter, @convolution_bias) {
  %image = glow_low.weight @convolution_image : memref<1x8x8x4xf32>
  %filter = glow_low.weight @convolution_filter : memref<6x3x3x4xf32>
  %bias = glow_low.weight @convolution_bias : memref<6xf32>
  %out = glow_low.alloc : memref<1x6x6x6xf32>
  // CHECK: glow_low.conv @out %out, @in %image, @in %filter
  glow_low.conv @out %out, @in %image, @in %filter
  %out1 = glow_low.alloc : memref<1x4x3x6xf32>
  // CHECK: glow_low.conv @out %out1, @in %image, @in %filter, @in %bias {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 2]}
  glow_low.conv @out %out1, @in %image, @in %filter, @in %bias {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 2]}
}

// CHECK-LABEL: glow_low.func @convolution_conv_transpose(@convolution_image, @convolution_up, @convolution_bias)
glow_low.func @convolution_conv_transpose(@convolution_image, @convolution_up, @convolution_bias) {
  %image = glow_low.weight @convolution_image : memref<1x8x8x4xf32>
  %up = glow_low.weight @convolution_up : memref<4x2x2x6xf32>
  %bias = glow_low.weight @convolution_bias : memref<6xf32>
  %out = glow_low.alloc : memref<1x9x9x6xf32>
  // CHECK: glow_low.conv_transpose @out %out, @in %image, @in %up
  glow_low.conv_transpose @out %out, @in %image, @in %up
  %out1 = glow_low.alloc : memref<1x17x16x6xf32>
  // CHECK: glow_low.conv_transpose @out %out1, @in %image, @in %up, @in %bias {strides = [2, 2], pads = [1, 0, 0, 1], dilations = [2, 1], output_padding = [1, 1]}
  glow_low.conv_transpose @out %out1, @in %image, @in %up, @in %bias {strides = [2, 2], pads = [1, 0, 0, 1], dilations = [2, 1], output_padding = [1, 1]}
}

glow_high.placeholder @linear_a : tensor<5x2x3xf32> {input}
glow_high.placeholder @linear_b : tensor<3x4xf32> {input}
glow_high.placeholder @linear_m : tensor<2x3xf32> {input}
glow_high.placeholder @linear_bias : tensor<4xf32> {input}

// CHECK-LABEL: glow_low.func @linear_matmul(@linear_a, @linear_b, @linear_bias)
glow_low.func @linear_matmul(@linear_a, @linear_b, @linear_bias) {
  %a = glow_low.weight @linear_a : memref<5x2x3xf32>
  %b = glow_low.weight @linear_b : memref<3x4xf32>
  %bias = glow_low.weight @linear_bias : memref<4xf32>
  %out = glow_low.alloc : memref<5x2x4xf32>
  // CHECK: glow_low.matmul @out %out, @in %a, @in %b
  glow_low.matmul @out %out, @in %a, @in %b
  // CHECK: glow_low.matmul @out %out, @in %a, @in %b, @in %bias
  glow_low.matmul @out %out, @in %a, @in %b, @in %bias
}

// CHECK-LABEL: glow_low.func @linear_fully_connected(@linear_m, @linear_b, @linear_bias)
glow_low.func @linear_fully_connected(@linear_m, @linear_b, @linear_bias) {
  %m = glow_low.weight @linear_m : memref<2x3xf32>
  %b = glow_low.weight @linear_b : memref<3x4xf32>
  %bias = glow_low.weight @linear_bias : memref<4xf32>
  %out = glow_low.alloc : memref<2x4xf32>
  // CHECK: glow_low.fully_connected @out %out, @in %m, @in %b, @in %bias
  glow_low.fully_connected @out %out, @in %m, @in %b, @in %bias
}

glow_high.placeholder @linear_square : tensor<5x4x4xf32> {input}

// CHECK-LABEL: glow_low.func @linear_others(@linear_a, @linear_b, @linear_square)
glow_low.func @linear_others(@linear_a, @linear_b, @linear_square) {
  %a = glow_low.weight @linear_a : memref<5x2x3xf32>
  %b = glow_low.weight @linear_b : memref<3x4xf32>
  %square = glow_low.weight @linear_square : memref<5x4x4xf32>
  %out = glow_low.alloc : memref<5x2x4xf32>
  // CHECK: glow_low.einsum @out %out, @in %a, @in %b {equation = "abc,cd->abd"}
  glow_low.einsum @out %out, @in %a, @in %b {equation = "abc,cd->abd"}
  %out1 = glow_low.alloc : memref<5xf32>
  // CHECK: glow_low.det @out %out1, @in %square
  glow_low.det @out %out1, @in %square
}

glow_high.placeholder @pooling_image : tensor<1x9x9x4xf32> {input}

// CHECK-LABEL: glow_low.func @pooling_pools(@pooling_image)
glow_low.func @pooling_pools(@pooling_image) {
  %image = glow_low.weight @pooling_image : memref<1x9x9x4xf32>
  %out = glow_low.alloc : memref<1x8x8x4xf32>
  // CHECK: glow_low.max_pool @out %out, @in %image {kernel_shape = [2, 2]}
  glow_low.max_pool @out %out, @in %image {kernel_shape = [2, 2]}
  %out1 = glow_low.alloc : memref<1x4x4x4xf32>
  // CHECK: glow_low.avg_pool @out %out1, @in %image {kernel_shape = [2, 2], strides = [2, 2]}
  glow_low.avg_pool @out %out1, @in %image {kernel_shape = [2, 2], strides = [2, 2]}
  // CHECK: glow_low.lp_pool @out %out, @in %image {kernel_shape = [2, 2]}
  glow_low.lp_pool @out %out, @in %image {kernel_shape = [2, 2]}
}

glow_high.placeholder @normalization_x : tensor<2x5x5x6xf32> {input}
glow_high.placeholder @normalization_c : tensor<6xf32> {input}

glow_high.placeholder @attention_x : tensor<2x5x6xf32> {input}
glow_high.placeholder @attention_mask : tensor<5x5xf32> {input}

// CHECK-LABEL: glow_low.func @attention(@attention_x, @attention_mask)
glow_low.func @attention(@attention_x, @attention_mask) {
  %x = glow_low.weight @attention_x : memref<2x5x6xf32>
  %mask = glow_low.weight @attention_mask : memref<5x5xf32>
  %out = glow_low.alloc : memref<2x5x6xf32>
  // CHECK: glow_low.attention @out %out, @in %x, @in %x, @in %x {causal = true}
  glow_low.attention @out %out, @in %x, @in %x, @in %x {causal = true}
  // CHECK: glow_low.attention @out %out, @in %x, @in %x, @in %x, @in %mask {scale = 0.5}
  glow_low.attention @out %out, @in %x, @in %x, @in %x, @in %mask {scale = 0.5}
}

// CHECK-LABEL: glow_low.func @normalization_along_an_axis(@normalization_x)
glow_low.func @normalization_along_an_axis(@normalization_x) {
  %x = glow_low.weight @normalization_x : memref<2x5x5x6xf32>
  %out = glow_low.alloc : memref<2x5x5x6xf32>
  // CHECK: glow_low.softmax @out %out, @in %x
  glow_low.softmax @out %out, @in %x
  // CHECK: glow_low.log_softmax @out %out, @in %x
  glow_low.log_softmax @out %out, @in %x
  // CHECK: glow_low.hardmax @out %out, @in %x
  glow_low.hardmax @out %out, @in %x
}

// CHECK-LABEL: glow_low.func @normalization_statistics(@normalization_x, @normalization_c)
glow_low.func @normalization_statistics(@normalization_x, @normalization_c) {
  %x = glow_low.weight @normalization_x : memref<2x5x5x6xf32>
  %c = glow_low.weight @normalization_c : memref<6xf32>
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

// CHECK-LABEL: glow_low.func @normalization_neighbours(@normalization_x)
glow_low.func @normalization_neighbours(@normalization_x) {
  %x = glow_low.weight @normalization_x : memref<2x5x5x6xf32>
  %out = glow_low.alloc : memref<2x5x5x6xf32>
  // CHECK: glow_low.lrn @out %out, @in %x {size = 5}
  glow_low.lrn @out %out, @in %x {size = 5}
}

glow_high.placeholder @reductions_x : tensor<2x5x6xf32> {input}

// CHECK-LABEL: glow_low.func @reductions_with_unit_axes(@reductions_x)
glow_low.func @reductions_with_unit_axes(@reductions_x) {
  %x = glow_low.weight @reductions_x : memref<2x5x6xf32>
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

// CHECK-LABEL: glow_low.func @reductions_positions(@reductions_x)
glow_low.func @reductions_positions(@reductions_x) {
  %x = glow_low.weight @reductions_x : memref<2x5x6xf32>
  %out = glow_low.alloc : memref<2x1x6xi64>
  // CHECK: glow_low.arg_max @out %out, @in %x {axis = 1}
  glow_low.arg_max @out %out, @in %x {axis = 1}
  %out1 = glow_low.alloc : memref<1x5x6xi64>
  // CHECK: glow_low.arg_min @out %out1, @in %x {axis = 0}
  glow_low.arg_min @out %out1, @in %x {axis = 0}
}

// CHECK-LABEL: glow_low.func @reductions_running(@reductions_x)
glow_low.func @reductions_running(@reductions_x) {
  %x = glow_low.weight @reductions_x : memref<2x5x6xf32>
  %out = glow_low.alloc : memref<2x5x6xf32>
  // CHECK: glow_low.cum_sum @out %out, @in %x {axis = 1}
  glow_low.cum_sum @out %out, @in %x {axis = 1}
  // CHECK: glow_low.cum_prod @out %out, @in %x {axis = 0}
  glow_low.cum_prod @out %out, @in %x {axis = 0}
}

// CHECK-LABEL: glow_low.func @reductions_largest(@reductions_x)
glow_low.func @reductions_largest(@reductions_x) {
  %x = glow_low.weight @reductions_x : memref<2x5x6xf32>
  %out = glow_low.alloc : memref<2x5x3xf32>
  %out1 = glow_low.alloc : memref<2x5x3xi64>
  // CHECK: glow_low.top_k @out %out, @out %out1, @in %x {k = 3}
  glow_low.top_k @out %out, @out %out1, @in %x {k = 3}
}

glow_high.placeholder @recurrent_x : tensor<7x2x5xf32> {input}
glow_high.placeholder @recurrent_xb : tensor<2x7x5xf32> {input}
glow_high.placeholder @recurrent_len : tensor<2xi32> {input}
glow_high.placeholder @recurrent_w4 : tensor<1x12x5xf32> {input}
glow_high.placeholder @recurrent_r4 : tensor<1x12x3xf32> {input}
glow_high.placeholder @recurrent_b4 : tensor<1x24xf32> {input}
glow_high.placeholder @recurrent_s1 : tensor<1x2x3xf32> {input}
glow_high.placeholder @recurrent_p4 : tensor<1x9xf32> {input}
glow_high.placeholder @recurrent_w3 : tensor<1x9x5xf32> {input}
glow_high.placeholder @recurrent_r3 : tensor<1x9x3xf32> {input}
glow_high.placeholder @recurrent_b3 : tensor<1x18xf32> {input}
glow_high.placeholder @recurrent_w1 : tensor<1x3x5xf32> {input}
glow_high.placeholder @recurrent_r1 : tensor<1x3x3xf32> {input}
glow_high.placeholder @recurrent_b1 : tensor<1x6xf32> {input}
glow_high.placeholder @recurrent_sb : tensor<2x1x3xf32> {input}
glow_high.placeholder @recurrent_g4 : tensor<7x2x12xf32> {input}
glow_high.placeholder @recurrent_m4 : tensor<3x12xf32> {input}
glow_high.placeholder @recurrent_g3 : tensor<7x2x9xf32> {input}
glow_high.placeholder @recurrent_m3 : tensor<3x9xf32> {input}
glow_high.placeholder @recurrent_g1 : tensor<7x2x3xf32> {input}
glow_high.placeholder @recurrent_m1 : tensor<3x3xf32> {input}
glow_high.placeholder @recurrent_h : tensor<2x3xf32> {input}
glow_high.placeholder @recurrent_peep : tensor<9xf32> {input}
glow_high.placeholder @recurrent_bias : tensor<3xf32> {input}

// CHECK-LABEL: glow_low.func @recurrent_lstm(@recurrent_x, @recurrent_xb, @recurrent_len, @recurrent_w4, @recurrent_r4, @recurrent_b4, @recurrent_s1, @recurrent_sb, @recurrent_p4)
glow_low.func @recurrent_lstm(@recurrent_x, @recurrent_xb, @recurrent_len, @recurrent_w4, @recurrent_r4, @recurrent_b4, @recurrent_s1, @recurrent_sb, @recurrent_p4) {
  %x = glow_low.weight @recurrent_x : memref<7x2x5xf32>
  %xb = glow_low.weight @recurrent_xb : memref<2x7x5xf32>
  %len = glow_low.weight @recurrent_len : memref<2xi32>
  %w4 = glow_low.weight @recurrent_w4 : memref<1x12x5xf32>
  %r4 = glow_low.weight @recurrent_r4 : memref<1x12x3xf32>
  %b4 = glow_low.weight @recurrent_b4 : memref<1x24xf32>
  %s1 = glow_low.weight @recurrent_s1 : memref<1x2x3xf32>
  %sb = glow_low.weight @recurrent_sb : memref<2x1x3xf32>
  %p4 = glow_low.weight @recurrent_p4 : memref<1x9xf32>
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

// CHECK-LABEL: glow_low.func @recurrent_gru(@recurrent_x, @recurrent_len, @recurrent_w3, @recurrent_r3, @recurrent_b3, @recurrent_s1)
glow_low.func @recurrent_gru(@recurrent_x, @recurrent_len, @recurrent_w3, @recurrent_r3, @recurrent_b3, @recurrent_s1) {
  %x = glow_low.weight @recurrent_x : memref<7x2x5xf32>
  %len = glow_low.weight @recurrent_len : memref<2xi32>
  %w3 = glow_low.weight @recurrent_w3 : memref<1x9x5xf32>
  %r3 = glow_low.weight @recurrent_r3 : memref<1x9x3xf32>
  %b3 = glow_low.weight @recurrent_b3 : memref<1x18xf32>
  %s1 = glow_low.weight @recurrent_s1 : memref<1x2x3xf32>
  %out = glow_low.alloc : memref<7x1x2x3xf32>
  %out1 = glow_low.alloc : memref<1x2x3xf32>
  // CHECK: glow_low.gru @out %out, @out %out1, @in %x, @in %w3, @in %r3
  glow_low.gru @out %out, @out %out1, @in %x, @in %w3, @in %r3
  // CHECK: glow_low.gru @out %out, @out %out1, @in %x, @in %w3, @in %r3, @in %b3, @in %len, @in %s1 {direction = "reverse", linear_before_reset = true}
  glow_low.gru @out %out, @out %out1, @in %x, @in %w3, @in %r3, @in %b3, @in %len, @in %s1 {direction = "reverse", linear_before_reset = true}
}

// CHECK-LABEL: glow_low.func @recurrent_rnn(@recurrent_x, @recurrent_len, @recurrent_w1, @recurrent_r1, @recurrent_b1, @recurrent_s1)
glow_low.func @recurrent_rnn(@recurrent_x, @recurrent_len, @recurrent_w1, @recurrent_r1, @recurrent_b1, @recurrent_s1) {
  %x = glow_low.weight @recurrent_x : memref<7x2x5xf32>
  %len = glow_low.weight @recurrent_len : memref<2xi32>
  %w1 = glow_low.weight @recurrent_w1 : memref<1x3x5xf32>
  %r1 = glow_low.weight @recurrent_r1 : memref<1x3x3xf32>
  %b1 = glow_low.weight @recurrent_b1 : memref<1x6xf32>
  %s1 = glow_low.weight @recurrent_s1 : memref<1x2x3xf32>
  %out = glow_low.alloc : memref<7x1x2x3xf32>
  %out1 = glow_low.alloc : memref<1x2x3xf32>
  // CHECK: glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1
  glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1
  // CHECK: glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1, @in %b1, @in none, @in %s1 {activations = ["relu"], clip = 2.0}
  glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1, @in %b1, @in none, @in %s1 {activations = ["relu"], clip = 2.0}
  // CHECK: glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1, @in none, @in %len
  glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1, @in none, @in %len
}

// CHECK-LABEL: glow_low.func @recurrent_recurrences(@recurrent_g4, @recurrent_m4, @recurrent_g3, @recurrent_m3, @recurrent_g1, @recurrent_m1, @recurrent_h, @recurrent_peep, @recurrent_bias, @recurrent_len)
glow_low.func @recurrent_recurrences(@recurrent_g4, @recurrent_m4, @recurrent_g3, @recurrent_m3, @recurrent_g1, @recurrent_m1, @recurrent_h, @recurrent_peep, @recurrent_bias, @recurrent_len) {
  %g4 = glow_low.weight @recurrent_g4 : memref<7x2x12xf32>
  %m4 = glow_low.weight @recurrent_m4 : memref<3x12xf32>
  %g3 = glow_low.weight @recurrent_g3 : memref<7x2x9xf32>
  %m3 = glow_low.weight @recurrent_m3 : memref<3x9xf32>
  %g1 = glow_low.weight @recurrent_g1 : memref<7x2x3xf32>
  %m1 = glow_low.weight @recurrent_m1 : memref<3x3xf32>
  %h = glow_low.weight @recurrent_h : memref<2x3xf32>
  %peep = glow_low.weight @recurrent_peep : memref<9xf32>
  %bias = glow_low.weight @recurrent_bias : memref<3xf32>
  %len = glow_low.weight @recurrent_len : memref<2xi32>
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

glow_high.placeholder @storage_x : tensor<4xf32> {input}

// CHECK-LABEL: glow_low.func @storage_splat(@storage_x)
glow_low.func @storage_splat(@storage_x) {
  %x = glow_low.weight @storage_x : memref<4xf32>
  %out = glow_low.alloc : memref<4xf32>
  // CHECK: glow_low.splat @out %out {value = 0.5}
  glow_low.splat @out %out {value = 0.5}
  %out1 = glow_low.alloc : memref<i64>
  // CHECK: glow_low.splat @out %out1 {value = 3}
  glow_low.splat @out %out1 {value = 3}
}
