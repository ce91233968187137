// Simplifications of resizing.

// RUN: glow-opt %s -p canonicalize | filecheck %s

// A resize to the same shape is gone.
// CHECK-LABEL: glow_high.func @resize_to_same(
glow_high.func @resize_to_same(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: glow_high.return %x
  %0 = glow_high.resize %x {shape = [2, 3, 4], mode = "cubic"} : tensor<2x3x4xf32>
  glow_high.return %0
}

// A resize by other scales stays.
// CHECK-LABEL: glow_high.func @resize_by_scales(
glow_high.func @resize_by_scales(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: %0 = glow_high.resize %x {shape = [2, 3, 4], scales = [1.0, 1.0, 1.1], mode = "cubic"} : tensor<2x3x4xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.resize %x {shape = [2, 3, 4], scales = [1.0, 1.0, 1.1], mode = "cubic"} : tensor<2x3x4xf32>
  glow_high.return %0
}

// A crop stays.
// CHECK-LABEL: glow_high.func @resize_of_crop(
glow_high.func @resize_of_crop(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: %0 = glow_high.resize %x {shape = [2, 3, 4], coordinates = "tf_crop_and_resize", roi = [0.0, 0.0, 0.5, 1.0, 1.0, 1.0]} : tensor<2x3x4xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.resize %x {shape = [2, 3, 4], coordinates = "tf_crop_and_resize", roi = [0.0, 0.0, 0.5, 1.0, 1.0, 1.0]} : tensor<2x3x4xf32>
  glow_high.return %0
}
