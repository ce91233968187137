// Rows that are each multiplied by one of several matrices: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main(%x: tensor<5x6xf32>, %w: tensor<3x4x6xf32>, %i: tensor<5xi64>) {
  // expected-error@+1 {{the operands' inner sizes differ: 6 and 4}}
  %y = glow_high.grouped_matmul %x, %w, %i : tensor<5x6xf32>
}

// -----

glow_high.func @main(%x: tensor<5x6xf32>, %w: tensor<3x6x4xf32>, %i: tensor<4xi64>) {
  // expected-error@+1 {{there must be an index for each of 5 rows, not 4}}
  %y = glow_high.grouped_matmul %x, %w, %i : tensor<5x4xf32>
}

// -----

glow_high.func @main(%x: tensor<5x6xf32>, %w: tensor<0x6x4xf32>, %i: tensor<5xi64>) {
  // expected-error@+1 {{there are no matrices to choose from}}
  %y = glow_high.grouped_matmul %x, %w, %i : tensor<5x4xf32>
}

// -----

glow_high.func @main(%x: tensor<5x6xf32>, %w: tensor<3x6x4xf32>, %i: tensor<5xi64>, %b: tensor<4xf32>) {
  // expected-error@+1 {{operand 'bias' at position 3 does not verify: takes 2 axes, not 1}}
  %y = glow_high.grouped_matmul %x, %w, %i, %b : tensor<5x4xf32>
}

// -----

glow_high.func @main(%x: tensor<5x6xf32>, %w: tensor<3x6x4xf32>, %i: tensor<5xi64>, %b: tensor<2x4xf32>) {
  // expected-error@+1 {{bias must have shape (3, 4), not (2, 4)}}
  %y = glow_high.grouped_matmul %x, %w, %i, %b : tensor<5x4xf32>
}

// -----

glow_high.func @main(%x: tensor<5x6xf32>, %w: tensor<3x6x4xf32>, %i: tensor<5xf32>) {
  // expected-error@+1 {{operand 'index' at position 2 does not verify: takes i32 or i64, not f32}}
  %y = glow_high.grouped_matmul %x, %w, %i : tensor<5x4xf32>
}

// -----

// CHECK: glow_high.func @valid
glow_high.func @valid() {
}
