// Folds of single elements are these elements; other reductions of them are not.

// RUN: glow-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: glow_high.func @single_elements(
// CHECK-NEXT:    glow_high.return %x
glow_high.func @single_elements(%x: tensor<2x1xf32>) -> tensor<2x1xf32> {
  %0 = glow_high.reduce_sum %x {axes = [1], keepdims = false} : tensor<2xf32>
  %1 = glow_high.reshape %0 {shape = [2, 1]} : tensor<2x1xf32>
  %2 = glow_high.reduce_max %1 {axes = [1]} : tensor<2x1xf32>
  glow_high.return %2
}

// CHECK-LABEL: glow_high.func @single_squares(
// CHECK-NEXT:    %[[S:.*]] = glow_high.reduce_sum_square %x
glow_high.func @single_squares(%x: tensor<2x1xf32>) -> tensor<2x1xf32> {
  %0 = glow_high.reduce_sum_square %x {axes = [1]} : tensor<2x1xf32>
  glow_high.return %0
}
