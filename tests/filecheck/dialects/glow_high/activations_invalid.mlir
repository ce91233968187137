// Activation functions: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i32} : tensor<2x3xi32>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes floats, not i32}}
  %y = glow_high.sigmoid %x : tensor<2x3xi32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = true} : tensor<2x3xi1>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes numbers, not i1}}
  %y = glow_high.relu %x : tensor<2x3xi1>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %slope = glow_high.splat {value = 1 : i32} : tensor<2x3xi32>
  // expected-error@+1 {{operands have different element types: f32, i32}}
  %y = glow_high.prelu %x, %slope : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{approximate must be 'none' or 'tanh', not 'sigmoid'}}
  %y = glow_high.gelu %x {approximate = "sigmoid"} : tensor<2x3xf32>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @main
// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
}
