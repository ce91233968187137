// Reductions: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  // expected-error@+1 {{axis 3 is out of range for rank 3}}
  %y = glow_high.reduce_sum %x {axes = [3]} : tensor<2x5x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  // expected-error@+1 {{axes (0, -3) name an axis twice}}
  %y = glow_high.reduce_max %x {axes = [0, -3]} : tensor<2x5x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = true} : tensor<2x3xi1>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes numbers, not i1}}
  %y = glow_high.reduce_sum %x {axes = [0]} : tensor<1x3xi1>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  // expected-error@+1 {{result has type tensor<1x5x6xf32>, but tensor<5x6xf32> follows from the operands}}
  %y = glow_high.reduce_mean %x {axes = [0], keepdims = false} : tensor<1x5x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<0x3xf32>
  // expected-error@+1 {{there is nothing along axis 0 of shape (0, 3)}}
  %y = glow_high.arg_max %x {axis = 0} : tensor<1x3xi64>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  // expected-error@+1 {{result has type tensor<1x5x6xi32>, but tensor<1x5x6xi64> follows from the operands}}
  %y = glow_high.arg_min %x {axis = 0} : tensor<1x5x6xi32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  // expected-error@+1 {{axis -4 is out of range for rank 3}}
  %y = glow_high.cum_sum %x {axis = -4} : tensor<2x5x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  // expected-error@+1 {{cannot take 7 elements along axis 2 of shape (2, 5, 6)}}
  %v, %i = glow_high.top_k %x {k = 7} : tensor<2x5x7xf32>, tensor<2x5x7xi64>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @main
// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
}
