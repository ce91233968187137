// Fourier transforms, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @dft(%real: tensor<2x10x3x1xf32>, %complex: tensor<2x10x3x2xf16>) {
  %dft = glow_high.dft %real {axis = 1, length = 10} : tensor<2x10x3x2xf32>
  %dft_1 = glow_high.dft %real {axis = -2, length = 8, onesided = true} : tensor<2x10x5x2xf32>
  %dft_2 = glow_high.dft %complex {axis = 1, length = 9, inverse = true} : tensor<2x9x3x2xf16>
  %dft_3 = glow_high.dft %complex {axis = 1, length = 18, inverse = true, onesided = true} : tensor<2x18x3x1xf16>
}
