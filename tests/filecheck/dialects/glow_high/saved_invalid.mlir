// Values that another function has saved: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main(%x: tensor<4x3xf32>, %kept: tensor<4x3xf32>) {
  // expected-error@+1 {{a value is missing for what is computed}}
  %y = glow_high.saved %x, %kept, %kept : tensor<4x3xf32>
}

// -----

glow_high.func @main(%x: tensor<4x3xf32>, %kept: tensor<4x2xf32>) {
  // expected-error@+1 {{what was saved has another type than what is computed}}
  %y = glow_high.saved %x, %kept : tensor<4x2xf32>
}

// -----

// CHECK: glow_high.func @valid
glow_high.func @valid() {
}
