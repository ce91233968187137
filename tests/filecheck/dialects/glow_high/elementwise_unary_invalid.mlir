// Elementwise functions of one operand: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes truth values, not f32}}
  %y = glow_high.not %x : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i32} : tensor<2x3xi32>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes floats, not i32}}
  %y = glow_high.exp %x : tensor<2x3xi32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes integers, not f32}}
  %y = glow_high.bitwise_not %x : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = true} : tensor<2x3xi1>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes numbers, not i1}}
  %y = glow_high.neg %x : tensor<2x3xi1>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{result has type tensor<2x3xf32>, but tensor<2x3xi1> follows from the operands}}
  %y = glow_high.is_nan %x : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{result has type tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands}}
  %y = glow_high.abs %x : tensor<3x2xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{result has type tensor<2x3xf32>, but tensor<2x3xi32> follows from the operands}}
  %y = glow_high.cast %x {to = i32} : tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{f32 and i64 differ in width}}
  %y = glow_high.bit_cast %x {to = i64} : tensor<2x3xi64>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @main
// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
}

// -----

glow_high.func @round_mode(%x: tensor<2xf32>) {
  // expected-error@+1 {{a conversion to f8E4M3FN rounds to the nearest, not up}}
  %y = glow_high.cast %x {to = f8E4M3FN, round_mode = "up"} : tensor<2xf8E4M3FN>
  glow_high.return
}

// -----

glow_high.func @round_mode_word(%x: tensor<2xf32>) {
  // expected-error@+1 {{round_mode is one of nearest, up, down, not 'odd'}}
  %y = glow_high.cast %x {to = f8E8M0FNU, round_mode = "odd"} : tensor<2xf8E8M0FNU>
  glow_high.return
}

// -----

glow_high.func @arithmetic(%x: tensor<2xf8E4M3FN>) {
  // expected-error@+1 {{takes numbers, not f8E4M3FN}}
  %y = glow_high.abs %x : tensor<2xf8E4M3FN>
  glow_high.return
}

// -----

glow_high.func @narrow_bits(%x: tensor<2xi4>) {
  // expected-error@+1 {{i4 and i8 differ in width}}
  %y = glow_high.bit_cast %x {to = i8} : tensor<2xi8>
  glow_high.return
}
