// Matrix products: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{the operands' inner sizes differ: 3 and 2}}
  %y = glow_high.matmul %x, %x : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %v = glow_high.splat {value = 1.0} : tensor<3xf32>
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{operand 'left' at position 0 does not verify: takes 2 axes or more, not 1}}
  %y = glow_high.matmul %v, %x : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %z = glow_high.splat {value = 1 : i32} : tensor<3x2xi32>
  // expected-error@+1 {{operands have different element types}}
  %y = glow_high.matmul %x, %z : tensor<2x2xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0 : bf16} : tensor<2x2xbf16>
  // expected-error@+1 {{a product of bf16 is one of f32, not of f64}}
  %y = glow_high.matmul %x, %x {to = f64} : tensor<2x2xf64>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = true} : tensor<2x2xi1>
  // expected-error@+1 {{operand 'left' at position 0 does not verify: takes numbers and quantized elements, not i1}}
  %y = glow_high.matmul %x, %x : tensor<2x2xi1>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %b = glow_high.splat {value = 1.0} : tensor<3xf32>
  // expected-error@+1 {{bias must have shape (2,), not (3,)}}
  %y = glow_high.matmul %x, %x, %b {transpose_right = true} : tensor<2x2xf32>
}

// -----

glow_high.func @main() {
  %v = glow_high.splat {value = 1.0} : tensor<3xf32>
  %w = glow_high.splat {value = 1.0} : tensor<3x2xf32>
  %b = glow_high.splat {value = 1.0} : tensor<2xf32>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes 2 axes, not 1}}
  %y = glow_high.fully_connected %v, %w, %b : tensor<2xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %b = glow_high.splat {value = 1.0} : tensor<3xf32>
  // expected-error@+1 {{the input has 3 columns, the weights 2 rows}}
  %y = glow_high.fully_connected %x, %x, %b : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %w = glow_high.splat {value = 1.0} : tensor<3x2xf32>
  %b = glow_high.splat {value = 1.0} : tensor<3xf32>
  // expected-error@+1 {{bias must have shape (2,), not (3,)}}
  %y = glow_high.fully_connected %x, %w, %b : tensor<2x2xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{det needs square matrices, got shape (2, 3)}}
  %y = glow_high.det %x : tensor<f32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i32} : tensor<2x2xi32>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes floats, not i32}}
  %y = glow_high.det %x : tensor<i32>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @main
// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
}
