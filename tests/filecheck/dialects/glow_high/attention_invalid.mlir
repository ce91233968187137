// Attention: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main() {
  %q = glow_high.splat {value = 1.0} : tensor<3x8xf32>
  %k = glow_high.splat {value = 1.0} : tensor<4x7xf32>
  // expected-error@+1 {{queries have 8 elements, keys 7}}
  %y = glow_high.attention %q, %k, %k : tensor<3x7xf32>
}

// -----

glow_high.func @main() {
  %q = glow_high.splat {value = 1.0} : tensor<3x8xf32>
  %k = glow_high.splat {value = 1.0} : tensor<4x8xf32>
  // expected-error@+1 {{there are 4 keys for 3 values}}
  %y = glow_high.attention %q, %k, %q : tensor<3x8xf32>
}

// -----

glow_high.func @main() {
  %q = glow_high.splat {value = 1.0} : tensor<3xf32>
  // expected-error@+1 {{operand 'query' at position 0 does not verify: takes 2 axes or more, not 1}}
  %y = glow_high.attention %q, %q, %q : tensor<3xf32>
}

// -----

glow_high.func @main() {
  %q = glow_high.splat {value = 1.0} : tensor<3x8xf32>
  %m = glow_high.splat {value = 1.0} : tensor<2x3x3xf32>
  // expected-error@+1 {{a mask of shape (2, 3, 3) does not broadcast to (3, 3)}}
  %y = glow_high.attention %q, %q, %q, %m : tensor<2x3x8xf32>
}

// -----

glow_high.func @main() {
  %q = glow_high.splat {value = 1 : i32} : tensor<3x8xi32>
  // expected-error@+1 {{operand 'query' at position 0 does not verify: takes floats, not i32}}
  %y = glow_high.attention %q, %q, %q : tensor<3x8xi32>
}

// -----

glow_high.func @main() {
  %q = glow_high.splat {value = 1.0} : tensor<3x8xf32>
  %v = glow_high.splat {value = 1.0 : f64} : tensor<3x8xf64>
  // expected-error@+1 {{operands have different element types}}
  %y = glow_high.attention %q, %q, %v : tensor<3x8xf32>
}

// -----

glow_high.func @main() {
  %q = glow_high.splat {value = 1.0} : tensor<3x8xf32>
  // expected-error@+1 {{past must not be negative}}
  %y = glow_high.attention %q, %q, %q {past = -1} : tensor<3x8xf32>
}

// -----

glow_high.func @main() {
  %q = glow_high.splat {value = 1.0} : tensor<3x8xf32>
  // expected-error@+1 {{past is where causal attention begins: it needs causal}}
  %y = glow_high.attention %q, %q, %q {past = 1} : tensor<3x8xf32>
}

// -----

// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %q = glow_high.splat {value = 1.0} : tensor<3x8xf32>
}
