// Rows that are each multiplied by one of several matrices, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @grouped(%x: tensor<5x6xf32>, %w: tensor<3x6x4xf32>, %t: tensor<3x4x6xf32>, %i: tensor<5xi64>, %j: tensor<5xi32>, %b: tensor<3x4xf32>, %h: tensor<5x6xf16>, %wh: tensor<3x6x4xf16>) {
  %plain = glow_high.grouped_matmul %x, %w, %i : tensor<5x4xf32>
  %turned = glow_high.grouped_matmul %x, %t, %j {transpose_weights = true} : tensor<5x4xf32>
  %shifted = glow_high.grouped_matmul %x, %w, %i, %b : tensor<5x4xf32>
  %half = glow_high.grouped_matmul %h, %wh, %i : tensor<5x4xf16>
  %sums = glow_high.grouped_matmul %h, %wh, %i {to = f32} : tensor<5x4xf32>
}
