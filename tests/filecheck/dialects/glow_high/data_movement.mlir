// Operators that move elements, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @shape_and_order(%x: tensor<2x3x4xf32>, %i: tensor<1x3xi64>) {
  %reshape = glow_high.reshape %x {shape = [6, 4]} : tensor<6x4xf32>
  %scalar = glow_high.splat {value = true} : tensor<1x1xi1>
  %to_scalar = glow_high.reshape %scalar {shape = []} : tensor<i1>
  %transpose = glow_high.transpose %x {permutation = [2, 0, 1]} : tensor<4x2x3xf32>
  %transpose_1 = glow_high.transpose %i {permutation = [1, 0]} : tensor<3x1xi64>
  %expand = glow_high.expand %i {shape = [5, 2, 3]} : tensor<5x2x3xi64>
  %tile = glow_high.tile %x {repeats = [1, 0, 3]} : tensor<2x0x12xf32>
}

glow_high.func @parts(%x: tensor<2x3x4xf32>, %p: tensor<4xi1>) {
  %slice = glow_high.slice %x {starts = [0, 1, 0], ends = [2, 2, 0]} : tensor<2x1x0xf32>
  %slice_1 = glow_high.slice %x {starts = [1, 0, 3], ends = [-1, 3, 0], steps = [-1, 2, -2]} : tensor<2x2x2xf32>
  %concat = glow_high.concat %x, %x {axis = -1} : tensor<2x3x8xf32>
  %concat_1 = glow_high.concat %p {axis = 0} : tensor<4xi1>
}

glow_high.func @borders(%x: tensor<2x3x4xf32>, %v: tensor<f32>) {
  %pad = glow_high.pad %x {pads = [0, 1, 0, 0, 0, 2]} : tensor<2x4x6xf32>
  %pad_1 = glow_high.pad %x, %v {pads = [0, 1, 0, 0, 0, 2]} : tensor<2x4x6xf32>
  %pad_2 = glow_high.pad %x {pads = [1, 0, 0, 1, 0, 0], mode = "edge"} : tensor<4x3x4xf32>
  %pad_3 = glow_high.pad %x {pads = [0, 5, 0, 0, 0, 0], mode = "reflect"} : tensor<2x8x4xf32>
  %pad_4 = glow_high.pad %x {pads = [0, 0, 0, 0, 7, 0], mode = "wrap"} : tensor<2x10x4xf32>
}
