// Simplifications of resizing.

// RUN: glow-opt %s -p canonicalize | filecheck %s

glow_high.placeholder @x : tensor<2x3x4xf32> {input}
glow_high.placeholder @y_2x3x4xf32 : tensor<2x3x4xf32> {output}

// A resize to the same shape is gone.
// CHECK-LABEL: glow_high.func @resize_to_same(@x, @y_2x3x4xf32)
glow_high.func @resize_to_same(@x, @y_2x3x4xf32) {
  // CHECK-NEXT: %x = glow_high.get @x : tensor<2x3x4xf32>
  // CHECK-NEXT: glow_high.save %x, @y_2x3x4xf32
  %x = glow_high.get @x : tensor<2x3x4xf32>
  %0 = glow_high.resize %x {shape = [2, 3, 4], mode = "cubic"} : tensor<2x3x4xf32>
  glow_high.save %0, @y_2x3x4xf32
}

// A resize by other scales stays.
// CHECK-LABEL: glow_high.func @resize_by_scales(@x, @y_2x3x4xf32)
glow_high.func @resize_by_scales(@x, @y_2x3x4xf32) {
  // CHECK-NEXT: %x = glow_high.get @x : tensor<2x3x4xf32>
  // CHECK-NEXT: %0 = glow_high.resize %x {shape = [2, 3, 4], scales = [1.0, 1.0, 1.1], mode = "cubic"} : tensor<2x3x4xf32>
  // CHECK-NEXT: glow_high.save %0, @y_2x3x4xf32
  %x = glow_high.get @x : tensor<2x3x4xf32>
  %0 = glow_high.resize %x {shape = [2, 3, 4], scales = [1.0, 1.0, 1.1], mode = "cubic"} : tensor<2x3x4xf32>
  glow_high.save %0, @y_2x3x4xf32
}

// A crop stays.
// CHECK-LABEL: glow_high.func @resize_of_crop(@x, @y_2x3x4xf32)
glow_high.func @resize_of_crop(@x, @y_2x3x4xf32) {
  // CHECK-NEXT: %x = glow_high.get @x : tensor<2x3x4xf32>
  // CHECK-NEXT: %0 = glow_high.resize %x {shape = [2, 3, 4], coordinates = "tf_crop_and_resize", roi = [0.0, 0.0, 0.5, 1.0, 1.0, 1.0]} : tensor<2x3x4xf32>
  // CHECK-NEXT: glow_high.save %0, @y_2x3x4xf32
  %x = glow_high.get @x : tensor<2x3x4xf32>
  %0 = glow_high.resize %x {shape = [2, 3, 4], coordinates = "tf_crop_and_resize", roi = [0.0, 0.0, 0.5, 1.0, 1.0, 1.0]} : tensor<2x3x4xf32>
  glow_high.save %0, @y_2x3x4xf32
}
