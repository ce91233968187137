// Gradients, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @gradients(%x: tensor<8x4xf32>, %w: tensor<4x2xf32>, %g: tensor<8x2xf32>) {
  %y = glow_high.matmul %x, %w : tensor<8x2xf32>
  %dx, %dw = glow_high.gradient %y, none, %x, %w : tensor<8x4xf32>, tensor<4x2xf32>
  %vx = glow_high.gradient %y, %g, %x : tensor<8x4xf32>
  %a, %b = glow_high.variables %x, %x : tensor<8x4xf32>, tensor<8x4xf32>
}
