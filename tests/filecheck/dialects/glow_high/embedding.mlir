// Sums of rows of tables that segments of indices select, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @floats(%t: tensor<9x64xf16>, %i: tensor<14xi64>, %l: tensor<4xi32>, %w: tensor<14xf16>) {
  %sparse_lengths_sum = glow_high.sparse_lengths_sum %t, %i, %l : tensor<4x64xf16>
  %sparse_lengths_sum_1 = glow_high.sparse_lengths_sum %t, %i, %l, %w {bounds = "starts"} : tensor<4x64xf16>
  %sparse_lengths_sum_2 = glow_high.sparse_lengths_sum %t, %i, %l {bounds = "edges"} : tensor<3x64xf16>
}

glow_high.func @codes(%t: tensor<9x64xui8>, %i: tensor<14xi64>, %l: tensor<4xi32>, %w: tensor<14xf32>, %s: tensor<9xf32>) {
  %sparse_lengths_sum = glow_high.sparse_lengths_sum %t, %i, %l, %w, %s, %s : tensor<4x64xf32>
  %sparse_lengths_sum_1 = glow_high.sparse_lengths_sum %t, %i, %l, none, %s, %s : tensor<4x64xf32>
  %sparse_lengths_sum_2 = glow_high.sparse_lengths_sum %t, %i, %l, %w {fused = true} : tensor<4x56xf32>
}
