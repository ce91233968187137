// Attention with a recurrent state, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @rules(%q: tensor<2x5x8xf16>, %k: tensor<2x5x4xf16>, %v: tensor<2x5x6xf16>, %s: tensor<2x2x2x3xf32>, %g: tensor<2x5x4xf16>, %b: tensor<2x5x1xf16>) {
  %linear, %state = glow_high.linear_attention %q, %k, %v {q_num_heads = 4, kv_num_heads = 2, update_rule = "linear"} : tensor<2x5x12xf16>, tensor<2x2x2x3xf16>
  %gated, %state_1 = glow_high.linear_attention %q, %k, %v, %s, %g {q_num_heads = 4, kv_num_heads = 2, scale = 0.5, update_rule = "gated"} : tensor<2x5x12xf16>, tensor<2x2x2x3xf32>
  %delta, %state_2 = glow_high.linear_attention %q, %k, %v, none, none, %b {q_num_heads = 4, kv_num_heads = 2, update_rule = "delta"} : tensor<2x5x12xf16>, tensor<2x2x2x3xf16>
  %both, %state_3 = glow_high.linear_attention %q, %k, %v, %s, %g, %b {q_num_heads = 4, kv_num_heads = 2} : tensor<2x5x12xf16>, tensor<2x2x2x3xf32>
}
