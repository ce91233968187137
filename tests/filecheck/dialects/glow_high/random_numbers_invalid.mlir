// The generator of random bits: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i64} : tensor<2xi64>
  %narrow = glow_high.splat {value = 1 : i32} : tensor<2xi32>
  // expected-error@+1 {{operand 'stream' at position 1 does not verify: takes i64, not i32}}
  %y = glow_high.philox %x, %narrow, %x : tensor<2xui32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i64} : tensor<2xi64>
  // expected-error@+1 {{there are words 0 to 3, not 4}}
  %y = glow_high.philox %x, %x, %x {word = 4} : tensor<2xui32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i64} : tensor<2xi64>
  // expected-error@+1 {{a word has 1 to 32 bits, not 0}}
  %y = glow_high.philox %x, %x, %x {bits = 0} : tensor<2xui32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i64} : tensor<2xi64>
  // expected-error@+1 {{result has type tensor<2xi64>, but tensor<2xui32> follows from the operands}}
  %y = glow_high.philox %x, %x, %x : tensor<2xi64>
}

// -----

// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %x = glow_high.splat {value = 1 : i64} : tensor<2xi64>
}
