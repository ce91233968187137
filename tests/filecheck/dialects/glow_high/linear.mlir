// Matrix products, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @matmul(%a: tensor<5x2x3xf32>, %b: tensor<3x4xf32>, %bt: tensor<5x4x3xf32>, %bias: tensor<4xf32>, %n: tensor<3x4xi32>, %k: tensor<2x3xi32>) {
  %matmul = glow_high.matmul %a, %b : tensor<5x2x4xf32>
  %matmul_1 = glow_high.matmul %a, %b, %bias : tensor<5x2x4xf32>
  %matmul_2 = glow_high.matmul %a, %bt {transpose_right = true} : tensor<5x2x4xf32>
  %matmul_3 = glow_high.matmul %b, %a {transpose_left = true, transpose_right = true} : tensor<5x4x2xf32>
  %matmul_4 = glow_high.matmul %k, %n : tensor<2x4xi32>
}

glow_high.func @fully_connected(%m: tensor<2x3xf32>, %b: tensor<3x4xf32>, %bias: tensor<4xf32>) {
  %fully_connected = glow_high.fully_connected %m, %b, %bias : tensor<2x4xf32>
}

glow_high.func @det(%square: tensor<5x4x4xf32>) {
  %det = glow_high.det %square : tensor<5xf32>
}
