// Attention, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @attention(%q: tensor<2x3x5x8xf32>, %k: tensor<2x1x7x8xf32>, %v: tensor<7x4xf32>, %mask: tensor<5x7xf32>) {
  %attention = glow_high.attention %q, %k, %v : tensor<2x3x5x4xf32>
  %attention_1 = glow_high.attention %q, %k, %v, %mask {scale = 0.125} : tensor<2x3x5x4xf32>
  %attention_2 = glow_high.attention %q, %k, %v {causal = true, past = 2} : tensor<2x3x5x4xf32>
}
