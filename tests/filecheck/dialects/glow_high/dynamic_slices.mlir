// Slices whose start is an operand, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @slices(%x: tensor<5x6xf32>, %start: tensor<i64>, %narrow: tensor<1xi32>, %u: tensor<5x2xf32>) {
  %dynamic_slice = glow_high.dynamic_slice %x, %start : tensor<1x6xf32>
  %dynamic_slice_1 = glow_high.dynamic_slice %x, %narrow {axis = -1, size = 4} : tensor<5x4xf32>
  %dynamic_update_slice = glow_high.dynamic_update_slice %x, %u, %narrow {axis = 1} : tensor<5x6xf32>
}

glow_high.func @bounds(%x: tensor<?x6xf32, #glow.sizes<[n + 1], n = 1 to 9>>, %start: tensor<i64>) {
  %dynamic_slice = glow_high.dynamic_slice %x, %start {size = #glow.sizes<[n], n = 1 to 9>} : tensor<?x6xf32, #glow.sizes<[n], n = 1 to 9>>
  %dynamic_update_slice = glow_high.dynamic_update_slice %x, %dynamic_slice, %start : tensor<?x6xf32, #glow.sizes<[n + 1], n = 1 to 9>>
}
