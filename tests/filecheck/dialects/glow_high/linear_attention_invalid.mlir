// Mistakes in attention with a recurrent state.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong(%q: tensor<2x5x8xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x6xf32>, %g: tensor<2x5x3xf32>, %h: tensor<2x5x2xf32>) {
  // expected-error @below {{3 heads of queries share no 2 of keys}}
  %0, %1 = glow_high.linear_attention %q, %k, %v {q_num_heads = 3, kv_num_heads = 2, update_rule = "linear"} : tensor<2x5x12xf32>, tensor<2x2x2x3xf32>
}

// -----

glow_high.func @wrong(%q: tensor<2x5x8xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x6xf32>, %g: tensor<2x5x3xf32>, %h: tensor<2x5x2xf32>) {
  // expected-error @below {{keys of 4 elements do not fit queries of 8}}
  %0, %1 = glow_high.linear_attention %q, %k, %v {q_num_heads = 2, kv_num_heads = 2, update_rule = "linear"} : tensor<2x5x12xf32>, tensor<2x2x2x3xf32>
}

// -----

glow_high.func @wrong(%q: tensor<2x5x8xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x6xf32>, %g: tensor<2x5x3xf32>, %h: tensor<2x5x2xf32>) {
  // expected-error @below {{'quadratic' is none of linear, gated, delta, gated_delta}}
  %0, %1 = glow_high.linear_attention %q, %k, %v {q_num_heads = 4, kv_num_heads = 2, update_rule = "quadratic"} : tensor<2x5x12xf32>, tensor<2x2x2x3xf32>
}

// -----

glow_high.func @wrong(%q: tensor<2x5x8xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x6xf32>, %g: tensor<2x5x3xf32>, %h: tensor<2x5x2xf32>) {
  // expected-error @below {{the rule 'gated' needs decay}}
  %0, %1 = glow_high.linear_attention %q, %k, %v {q_num_heads = 4, kv_num_heads = 2, update_rule = "gated"} : tensor<2x5x12xf32>, tensor<2x2x2x3xf32>
}

// -----

glow_high.func @wrong(%q: tensor<2x5x8xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x6xf32>, %g: tensor<2x5x3xf32>, %h: tensor<2x5x2xf32>) {
  // expected-error @below {{the rule 'linear' has no decay}}
  %0, %1 = glow_high.linear_attention %q, %k, %v, none, %h {q_num_heads = 4, kv_num_heads = 2, update_rule = "linear"} : tensor<2x5x12xf32>, tensor<2x2x2x3xf32>
}

// -----

glow_high.func @wrong(%q: tensor<2x5x8xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x6xf32>, %g: tensor<2x5x3xf32>, %h: tensor<2x5x2xf32>) {
  // expected-error @below {{decay has shape (2, 5, 2) or (2, 5, 4)}}
  %0, %1 = glow_high.linear_attention %q, %k, %v, none, %g {q_num_heads = 4, kv_num_heads = 2, update_rule = "gated"} : tensor<2x5x12xf32>, tensor<2x2x2x3xf32>
}
