// Normalization: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  // expected-error@+1 {{axis 3 is out of range for rank 3}}
  %y = glow_high.softmax %x {axis = 3} : tensor<2x5x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i32} : tensor<2x3xi32>
  // expected-error@+1 {{takes floats, not i32}}
  %y = glow_high.log_softmax %x : tensor<2x3xi32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  %c = glow_high.splat {value = 1.0} : tensor<6xf32>
  %d = glow_high.splat {value = 1.0} : tensor<5xf32>
  // expected-error@+1 {{expected shape (6,), got (5,)}}
  %y = glow_high.batch_normalization %x, %c, %c, %c, %d : tensor<2x5x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  %c = glow_high.splat {value = 1.000000e+00 : f64} : tensor<6xf64>
  // expected-error@+1 {{operands have different element types}}
  %y = glow_high.batch_normalization %x, %c, %c, %c, %c : tensor<2x5x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  %c = glow_high.splat {value = 1.0} : tensor<2xf32>
  // expected-error@+1 {{axis 0 is the batch, channels lie along another one}}
  %y = glow_high.instance_normalization %x, %c, %c {axis = 0} : tensor<2x5x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  %c = glow_high.splat {value = 1.0} : tensor<6xf32>
  // expected-error@+1 {{4 groups do not divide 6 channels}}
  %y = glow_high.group_normalization %x, %c, %c {groups = 4} : tensor<2x5x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  %d = glow_high.splat {value = 1.0} : tensor<5xf32>
  // expected-error@+1 {{shape (5,) does not broadcast to (2, 5, 6)}}
  %y = glow_high.layer_normalization %x, %d : tensor<2x5x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  %d = glow_high.splat {value = 1.0} : tensor<3x2x5x6xf32>
  // expected-error@+1 {{shape (3, 2, 5, 6) does not broadcast to (2, 5, 6)}}
  %y = glow_high.rms_normalization %x, %d : tensor<2x5x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x5x6xf32>
  // expected-error@+1 {{size must be positive}}
  %y = glow_high.lrn %x {size = 0} : tensor<2x5x6xf32>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @main
// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
}
