// Operators that select elements by indices, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @taking(%x: tensor<2x3x4xf32>, %i: tensor<5x2xi64>, %j: tensor<2x1x4xi32>) {
  %gather = glow_high.gather %x, %i : tensor<5x2x3x4xf32>
  %gather_1 = glow_high.gather %x, %i {axis = -1} : tensor<2x3x5x2xf32>
  %gather_2 = glow_high.gather %x, %i {failure = "the sizes differ"} : tensor<5x2x3x4xf32>
  %gather_elements = glow_high.gather_elements %x, %j {axis = 1} : tensor<2x1x4xf32>
  %gather_elements_1 = glow_high.gather_elements %x, %j : tensor<2x1x4xf32>
  %gather_nd = glow_high.gather_nd %x, %i : tensor<5x4xf32>
  %k = glow_high.splat {value = 0 : i32} : tensor<2x6x1xi32>
  %gather_nd_1 = glow_high.gather_nd %x, %k {batch_dims = 1} : tensor<2x6x4xf32>
}

glow_high.func @replacing(%x: tensor<2x3x4xf32>, %i: tensor<5x2xi64>, %j: tensor<2x1x4xi32>, %u: tensor<2x1x4xf32>, %w: tensor<5x4xf32>) {
  %scatter_elements = glow_high.scatter_elements %x, %j, %u {axis = 1} : tensor<2x3x4xf32>
  %scatter_elements_1 = glow_high.scatter_elements %x, %j, %u {reduction = "add"} : tensor<2x3x4xf32>
  %scatter_nd = glow_high.scatter_nd %x, %i, %w : tensor<2x3x4xf32>
  %scatter_nd_1 = glow_high.scatter_nd %x, %i, %w {reduction = "max"} : tensor<2x3x4xf32>
}

glow_high.func @order(%x: tensor<2x3x4xf32>, %l: tensor<3xi64>) {
  %reverse_sequence = glow_high.reverse_sequence %x, %l : tensor<2x3x4xf32>
  %reverse_sequence_1 = glow_high.reverse_sequence %x, %l {batch_axis = -2, time_axis = 2} : tensor<2x3x4xf32>
}
