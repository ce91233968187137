// Resizing, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @modes(%x: tensor<1x4x6xf32>, %b: tensor<4xi1>) {
  %resize = glow_high.resize %x {shape = [1, 8, 3]} : tensor<1x8x3xf32>
  %resize_1 = glow_high.resize %b {shape = [9], rounding = "floor", coordinates = "asymmetric"} : tensor<9xi1>
  %resize_2 = glow_high.resize %x {shape = [1, 3, 4], scales = [1.0, 0.8, 0.7], mode = "linear", antialias = true} : tensor<1x3x4xf32>
  %resize_3 = glow_high.resize %x {shape = [1, 2, 3], mode = "cubic", cubic_coefficient = -0.5, exclude_outside = true} : tensor<1x2x3xf32>
  %resize_4 = glow_high.resize %x {shape = [1, 2, 3], mode = "linear", coordinates = "tf_crop_and_resize", extrapolation = 0.5, roi = [0.0, 0.5, -0.25, 1.0, 0.75, 1.0]} : tensor<1x2x3xf32>
}
