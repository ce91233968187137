// Predicates: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main(%x: tensor<4x3xf32>, %mask: tensor<3xi1>) {
  // expected-error@+1 {{the mask has shape (3,), which are no leading axes of (4, 3)}}
  %y = glow_high.predicate %x, %mask : tensor<4x3xf32>
}

// -----

glow_high.func @main(%x: tensor<4x3xf32>, %mask: tensor<4xf32>) {
  // expected-error@+1 {{operand 'mask' at position 1 does not verify: takes truth values, not f32}}
  %y = glow_high.predicate %x, %mask : tensor<4x3xf32>
}

// -----

glow_high.func @main(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>, %rows: tensor<1xi1>) {
  // expected-error@+1 {{predicate must have shape (4,), not (1,)}}
  %y = glow_high.predicated_matmul %x, %w, %rows : tensor<4x5xf32>
}

// -----

// CHECK: glow_high.func @valid
glow_high.func @valid() {
}
