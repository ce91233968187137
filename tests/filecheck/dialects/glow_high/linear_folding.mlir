// Simplifications of matrix products.

// RUN: glow-opt %s -p canonicalize --split-input-file | filecheck %s

// A right operand for all batches is a matrix.

// CHECK-LABEL: glow_high.func @for_all(
// CHECK:         %[[MATRIX:.*]] = glow_high.reshape %w {shape = [4, 3]} : tensor<4x3xf32>
// CHECK-NEXT:    glow_high.matmul %x, %[[MATRIX]], %b {transpose_right = true} : tensor<2x5x4xf32>
glow_high.func @for_all(%x: tensor<2x5x3xf32>, %w: tensor<1x4x3xf32>, %b: tensor<4xf32>) -> tensor<2x5x4xf32> {
  %1 = glow_high.matmul %x, %w, %b {transpose_right = true} : tensor<2x5x4xf32>
  glow_high.return %1
}

// -----

// Not where the result would lose an axis.

// CHECK-LABEL: glow_high.func @more_axes(
// CHECK:         glow_high.matmul %x, %w : tensor<1x5x4xf32>
glow_high.func @more_axes(%x: tensor<5x3xf32>, %w: tensor<1x3x4xf32>) -> tensor<1x5x4xf32> {
  %1 = glow_high.matmul %x, %w : tensor<1x5x4xf32>
  glow_high.return %1
}
