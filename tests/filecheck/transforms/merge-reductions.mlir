// The smallest and the largest element of a tensor are taken in one pass.

// RUN: glow-opt %s -p merge-reductions --split-input-file | filecheck %s

// CHECK-LABEL: glow_high.func @range(
// CHECK:         %[[ROW:.*]] = glow_high.generic %x, %{{.*}} {{.*}} iterators = ["row", "reduction", "reduction"]
// CHECK:           glow.stage({{.*}}) over [1, 2] fold [minimumf, maximumf] along [1, 2] {
// CHECK:         %[[L:.*]] = glow_high.slice %[[ROW]] {starts = [0], ends = [1], steps = [1]} : tensor<1xf32>
// CHECK-NEXT:    %[[M:.*]] = glow_high.slice %[[ROW]] {starts = [1], ends = [2], steps = [1]} : tensor<1xf32>
// CHECK-NEXT:    %[[LEAST:.*]] = glow_high.reshape %[[L]] {shape = []} : tensor<f32>
// CHECK-NEXT:    %[[MOST:.*]] = glow_high.reshape %[[M]] {shape = [1, 1]} : tensor<1x1xf32>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.relu %[[MOST]]
// CHECK-NEXT:    glow_high.return %[[LEAST]], %[[Y]]
glow_high.func @range(%x: tensor<8x9xf32>) -> (tensor<f32>, tensor<1x1xf32>) {
  %most = glow_high.reduce_max %x {axes = [0, 1]} : tensor<1x1xf32>
  %y = glow_high.relu %most : tensor<1x1xf32>
  %least = glow_high.reduce_min %x {axes = [-1, 0], keepdims = false} : tensor<f32>
  glow_high.return %least, %y
}

// -----

// Those of lines stay apart, as do a single one and those of two tensors.

// CHECK-LABEL: glow_high.func @apart(
// CHECK-NOT:     glow_high.generic
// CHECK:         glow_high.return
glow_high.func @apart(%x: tensor<8x9xf32>, %z: tensor<8x9xf32>) -> (tensor<8x1xf32>, tensor<f32>, tensor<f32>) {
  %least = glow_high.reduce_min %x {axes = [1]} : tensor<8x1xf32>
  %most = glow_high.reduce_max %x {axes = [0, 1], keepdims = false} : tensor<f32>
  %other = glow_high.reduce_min %z {axes = [0, 1], keepdims = false} : tensor<f32>
  glow_high.return %least, %most, %other
}
