// Elementwise operators of two and three operands: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %z = glow_high.splat {value = 1.0} : tensor<3x2xf32>
  // expected-error@+1 {{shapes (2, 3), (3, 2) do not broadcast}}
  %y = glow_high.add %x, %z : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %z = glow_high.splat {value = 1 : i32} : tensor<2x3xi32>
  // expected-error@+1 {{operands have different element types: f32, i32}}
  %y = glow_high.mul %x, %z : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{operand 'left' at position 0 does not verify: takes truth values, not f32}}
  %y = glow_high.and %x, %x : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{operand 'left' at position 0 does not verify: takes integers, not f32}}
  %y = glow_high.bitwise_or %x, %x : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{operand 'condition' at position 0 does not verify: takes truth values, not f32}}
  %y = glow_high.where %x, %x, %x : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %z = glow_high.splat {value = 1 : i32} : tensor<2x3xi32>
  %c = glow_high.splat {value = true} : tensor<2x3xi1>
  // expected-error@+1 {{both branches must have one element type}}
  %y = glow_high.where %c, %x, %z : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %z = glow_high.splat {value = true} : tensor<2x3xi1>
  // expected-error@+1 {{operand 'right' at position 1 does not verify: takes numbers, not i1}}
  %y = glow_high.pow %x, %z : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i32} : tensor<2x3xi32>
  // expected-error@+1 {{direction must be 'left' or 'right', not 'up'}}
  %y = glow_high.bit_shift %x, %x {direction = "up"} : tensor<2x3xi32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+2 {{expected 2 operands, got 1}}
  %y = glow_high.add %x : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+2 {{expected 3 operands, got 4}}
  %y = glow_high.clip %x, %x, %x, %x : tensor<2x3xf32>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @main
// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
}
