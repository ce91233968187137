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

// -----

// What is repeated for each batch need not be, on either side, unless nothing else says how many batches there are.

// CHECK-LABEL: glow_high.func @expanded(
// CHECK-NEXT:    %[[A:.*]] = glow_high.matmul %x, %w : tensor<4x3x5xf32>
// CHECK-NEXT:    %[[E:.*]] = glow_high.expand %z {shape = [4, 1, 8]} : tensor<4x1x8xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.matmul %z, %y : tensor<4x1x5xf32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.matmul %[[E]], %w : tensor<4x1x5xf32>
// CHECK-NEXT:    glow_high.return %[[A]], %[[B]], %[[C]]
glow_high.func @expanded(%x: tensor<4x3x8xf32>, %w: tensor<8x5xf32>, %y: tensor<4x8x5xf32>, %z: tensor<1x8xf32>) -> (tensor<4x3x5xf32>, tensor<4x1x5xf32>, tensor<4x1x5xf32>) {
  %1 = glow_high.expand %w {shape = [4, 8, 5]} : tensor<4x8x5xf32>
  %2 = glow_high.matmul %x, %1 : tensor<4x3x5xf32>
  %3 = glow_high.expand %z {shape = [4, 1, 8]} : tensor<4x1x8xf32>
  %4 = glow_high.matmul %3, %y : tensor<4x1x5xf32>
  %5 = glow_high.matmul %3, %1 : tensor<4x1x5xf32>
  glow_high.return %2, %4, %5
}

// -----

// The element type of sums stays.

// CHECK-LABEL: glow_high.func @wide(
// CHECK:         glow_high.matmul %x, %{{.*}} {to = f32} : tensor<2x5x4xf32>
glow_high.func @wide(%x: tensor<2x5x3xbf16>, %w: tensor<1x3x4xbf16>) -> tensor<2x5x4xf32> {
  %1 = glow_high.matmul %x, %w {to = f32} : tensor<2x5x4xf32>
  glow_high.return %1
}
