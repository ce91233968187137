// Pooling: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  // expected-error@+1 {{kernel_shape must have 2 elements}}
  %y = glow_high.max_pool %x {kernel_shape = [2]} : tensor<1x7x7x4xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i32} : tensor<1x8x8x4xi32>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes floats, not i32}}
  %y = glow_high.avg_pool %x {kernel_shape = [2, 2]} : tensor<1x7x7x4xi32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  // expected-error@+1 {{dilations must be positive}}
  %y = glow_high.max_pool %x {kernel_shape = [2, 2], dilations = [0, 1]} : tensor<1x7x7x4xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  // expected-error@+1 {{result has type tensor<1x8x8x4xf32>, but tensor<1x7x7x4xf32> follows from the operands}}
  %y = glow_high.lp_pool %x {kernel_shape = [2, 2]} : tensor<1x8x8x4xf32>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @main
// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
}
