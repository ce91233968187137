// Recurrent layers: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<7x2x5xf32>
  %w = glow_high.splat {value = 1.0} : tensor<1x12x5xf32>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  // expected-error@+1 {{direction must be one of forward, reverse, bidirectional, not 'up'}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r {direction = "up"} : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i32} : tensor<7x2x5xi32>
  %w = glow_high.splat {value = 1.0} : tensor<1x12x5xf32>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes floats, not i32}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %w = glow_high.splat {value = 1.0} : tensor<1x12x5xf32>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes 3 axes, not 2}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<7x2x5xf32>
  %w = glow_high.splat {value = 1.0} : tensor<1x9x5xf32>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  // expected-error@+1 {{weights must have shape (1, 12, 5), not (1, 9, 5)}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<7x2x5xf32>
  %w = glow_high.splat {value = 1.0} : tensor<1x12x5xf32>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  // expected-error@+1 {{weights must have shape (2, 12, 5), not (1, 12, 5)}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r {direction = "bidirectional"} : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<7x2x5xf32>
  %w = glow_high.splat {value = 1.0} : tensor<1x12x5xf32>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  %b = glow_high.splat {value = 1.0} : tensor<1x12xf32>
  // expected-error@+1 {{bias must have shape (1, 24), not (1, 12)}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r, %b : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<7x2x5xf32>
  %w = glow_high.splat {value = 1.0} : tensor<1x12x5xf32>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  %l = glow_high.splat {value = 1} : tensor<2xi64>
  // expected-error@+1 {{operand 'sequence_lens' at position 3 does not verify: takes i32, not i64}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r, none, %l : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<7x2x5xf32>
  %w = glow_high.splat {value = 1.0} : tensor<1x12x5xf32>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  %s = glow_high.splat {value = 1.0} : tensor<1x3x2xf32>
  // expected-error@+1 {{initial_c must have shape (1, 2, 3), not (1, 3, 2)}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r, none, none, none, %s : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<7x2x5xf32>
  %w = glow_high.splat {value = 1.0} : tensor<1x12x5xf32>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  %p = glow_high.splat {value = 1.0} : tensor<1x3xf32>
  // expected-error@+1 {{peepholes must have shape (1, 9), not (1, 3)}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r, none, none, none, none, %p : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<7x2x5xf32>
  %w = glow_high.splat {value = 1.0} : tensor<1x12x5xf32>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  // expected-error@+1 {{expected 3 gate functions, got 1}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r {activations = ["tanh"]} : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<7x2x5xf32>
  %w = glow_high.splat {value = 1.0} : tensor<1x12x5xf32>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  // expected-error@+1 {{'cosh' is no gate function}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r {activations = ["sigmoid", "cosh", "tanh"]} : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<7x2x5xf32>
  %w = glow_high.splat {value = 1.0} : tensor<1x12x5xf32>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  // expected-error@+1 {{alphas must have 3 elements}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r {alphas = array<f32: 0.5>} : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

glow_high.func @main() {
  %g = glow_high.splat {value = 1.0} : tensor<7x2x12xf32>
  %m = glow_high.splat {value = 1.0} : tensor<12x3xf32>
  %h = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{weights must have shape (3, 12)}}
  %y, %last, %cell = glow_high.lstm_recurrence %g, %m, %h, %h : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %g = glow_high.splat {value = 1.0} : tensor<7x2x12xf32>
  %m = glow_high.splat {value = 1.0} : tensor<3x12xf32>
  %h = glow_high.splat {value = 1.0} : tensor<3x2xf32>
  // expected-error@+1 {{an initial state must have shape (2, 3)}}
  %y, %last, %cell = glow_high.lstm_recurrence %g, %m, %h, %h : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %g = glow_high.splat {value = 1.0} : tensor<7x2x12xf32>
  %m = glow_high.splat {value = 1.0} : tensor<3x12xf32>
  %h = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{clip must not be negative}}
  %y, %last, %cell = glow_high.lstm_recurrence %g, %m, %h, %h {clip = -1.0} : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %g = glow_high.splat {value = 1.0} : tensor<7x2x12xf32>
  %m = glow_high.splat {value = 1.0} : tensor<3x12xf32>
  %h = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %l = glow_high.splat {value = 1 : i32} : tensor<7xi32>
  // expected-error@+1 {{sequence_lens must have shape (2,)}}
  %y, %last, %cell = glow_high.lstm_recurrence %g, %m, %h, %h, none, %l : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %m = glow_high.splat {value = 1.0} : tensor<3x12xf32>
  %h = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes 3 axes, not 2}}
  %y, %last, %cell = glow_high.lstm_recurrence %m, %m, %h, %h : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %g = glow_high.splat {value = 1.0} : tensor<7x2x9xf32>
  %m = glow_high.splat {value = 1.0} : tensor<3x9xf32>
  %h = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %b = glow_high.splat {value = 1.0} : tensor<9xf32>
  // expected-error@+1 {{bias must have shape (3,)}}
  %y, %last = glow_high.gru_recurrence %g, %m, %h, %b : tensor<7x2x3xf32>, tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %g = glow_high.splat {value = 1.0} : tensor<7x2x12xf32>
  %m = glow_high.splat {value = 1.0 : f16} : tensor<3x12xf16>
  %h = glow_high.splat {value = 1.0 : f32} : tensor<2x3xf32>
  // expected-error@+1 {{an operand has elements of f16, the input of f32}}
  %y, %last, %cell = glow_high.lstm_recurrence %g, %m, %h, %h : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %g = glow_high.splat {value = 1.0} : tensor<7x2x12xf32>
  %m = glow_high.splat {value = 1.0 : f32} : tensor<3x12xf32>
  %h = glow_high.splat {value = 1.0 : f64} : tensor<2x3xf64>
  // expected-error@+1 {{an operand has elements of f64, the input of f32}}
  %y, %last, %cell = glow_high.lstm_recurrence %g, %m, %h, %h : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %g = glow_high.splat {value = 1.0} : tensor<7x2x9xf32>
  %m = glow_high.splat {value = 1.0 : f32} : tensor<3x9xf32>
  %h = glow_high.splat {value = 1.0 : f64} : tensor<2x3xf64>
  // expected-error@+1 {{an operand has elements of f64, the input of f32}}
  %y, %last = glow_high.gru_recurrence %g, %m, %h : tensor<7x2x3xf32>, tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %g = glow_high.splat {value = 1.0} : tensor<7x2x3xf32>
  %m = glow_high.splat {value = 1.0 : f64} : tensor<3x3xf64>
  %h = glow_high.splat {value = 1.0 : f32} : tensor<2x3xf32>
  // expected-error@+1 {{an operand has elements of f64, the input of f32}}
  %y, %last = glow_high.rnn_recurrence %g, %m, %h : tensor<7x2x3xf32>, tensor<2x3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<7x2x5xf32>
  %w = glow_high.splat {value = 1.0 : f16} : tensor<1x12x5xf16>
  %r = glow_high.splat {value = 1.0} : tensor<1x12x3xf32>
  // expected-error@+1 {{an operand has elements of f16, the input of f32}}
  %y, %last, %cell = glow_high.lstm %x, %w, %r : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @main
// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
}
