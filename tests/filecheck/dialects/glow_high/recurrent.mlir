// Recurrent layers and their recurrences, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @lstm(%x: tensor<7x2x5xf32>, %xb: tensor<2x7x5xf32>, %len: tensor<2xi32>, %w4: tensor<1x12x5xf32>, %r4: tensor<1x12x3xf32>, %b4: tensor<1x24xf32>, %s1: tensor<1x2x3xf32>, %sb: tensor<2x1x3xf32>, %p4: tensor<1x9xf32>, %w4b: tensor<2x12x5xf32>, %r4b: tensor<2x12x3xf32>) {
  %lstm_states, %lstm_last_h, %lstm_last_c = glow_high.lstm %x, %w4, %r4 : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
  %lstm_2_states, %lstm_2_last_h, %lstm_2_last_c = glow_high.lstm %x, %w4, %r4, %b4, %len, %s1, %s1, %p4 {input_forget = true, clip = 3.0} : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
  %lstm_3_states, %lstm_3_last_h, %lstm_3_last_c = glow_high.lstm %x, %w4b, %r4b {direction = "bidirectional", activations = ["sigmoid", "tanh", "relu", "hard_sigmoid", "affine", "softsign"], alphas = [0.0, 0.0, 0.0, 0.25, 2.0, 0.0], betas = [0.0, 0.0, 0.0, 0.5, 1.0, 0.0]} : tensor<7x2x2x3xf32>, tensor<2x2x3xf32>, tensor<2x2x3xf32>
  %lstm_4_states, %lstm_4_last_h, %lstm_4_last_c = glow_high.lstm %xb, %w4, %r4, none, none, %sb, %sb {direction = "reverse", batch_first = true} : tensor<2x7x1x3xf32>, tensor<2x1x3xf32>, tensor<2x1x3xf32>
}

glow_high.func @gru(%x: tensor<7x2x5xf32>, %xb: tensor<2x7x5xf32>, %len: tensor<2xi32>, %w3: tensor<1x9x5xf32>, %r3: tensor<1x9x3xf32>, %b3: tensor<1x18xf32>, %s1: tensor<1x2x3xf32>) {
  %gru_states, %gru_last_h = glow_high.gru %x, %w3, %r3 : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>
  %gru_2_states, %gru_2_last_h = glow_high.gru %x, %w3, %r3, %b3, %len, %s1 {direction = "reverse", linear_before_reset = true} : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>
  %gru_3_states, %gru_3_last_h = glow_high.gru %xb, %w3, %r3 {batch_first = true} : tensor<2x7x1x3xf32>, tensor<2x1x3xf32>
}

glow_high.func @rnn(%x: tensor<7x2x5xf32>, %len: tensor<2xi32>, %w1: tensor<1x3x5xf32>, %r1: tensor<1x3x3xf32>, %b1: tensor<1x6xf32>, %s1: tensor<1x2x3xf32>) {
  %rnn_states, %rnn_last_h = glow_high.rnn %x, %w1, %r1 : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>
  %rnn_2_states, %rnn_2_last_h = glow_high.rnn %x, %w1, %r1, %b1, none, %s1 {activations = ["relu"], clip = 2.0} : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>
  %rnn_3_states, %rnn_3_last_h = glow_high.rnn %x, %w1, %r1, none, %len : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>
}

glow_high.func @recurrences(%g4: tensor<7x2x12xf32>, %m4: tensor<3x12xf32>, %g3: tensor<7x2x9xf32>, %m3: tensor<3x9xf32>, %g1: tensor<7x2x3xf32>, %m1: tensor<3x3xf32>, %h: tensor<2x3xf32>, %peep: tensor<9xf32>, %bias: tensor<3xf32>, %len: tensor<2xi32>) {
  %lstm_recurrence_states, %lstm_recurrence_last_h, %lstm_recurrence_last_c = glow_high.lstm_recurrence %g4, %m4, %h, %h : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  %lstm_recurrence_2_states, %lstm_recurrence_2_last_h, %lstm_recurrence_2_last_c = glow_high.lstm_recurrence %g4, %m4, %h, %h, %peep, %len {reverse = true, input_forget = true, clip = 3.0} : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  %lstm_recurrence_3_states, %lstm_recurrence_3_last_h, %lstm_recurrence_3_last_c = glow_high.lstm_recurrence %g4, %m4, %h, %h, none, %len {activations = ["hard_sigmoid", "tanh", "relu"], alphas = [0.25, 0.0, 0.0], betas = [0.5, 0.0, 0.0]} : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  %gru_recurrence_states, %gru_recurrence_last_h = glow_high.gru_recurrence %g3, %m3, %h : tensor<7x2x3xf32>, tensor<2x3xf32>
  %gru_recurrence_2_states, %gru_recurrence_2_last_h = glow_high.gru_recurrence %g3, %m3, %h, %bias, %len {reverse = true} : tensor<7x2x3xf32>, tensor<2x3xf32>
  %rnn_recurrence_states, %rnn_recurrence_last_h = glow_high.rnn_recurrence %g1, %m1, %h : tensor<7x2x3xf32>, tensor<2x3xf32>
  %rnn_recurrence_2_states, %rnn_recurrence_2_last_h = glow_high.rnn_recurrence %g1, %m1, %h, %len {activations = ["relu"]} : tensor<7x2x3xf32>, tensor<2x3xf32>
  %lstm_recurrence_with_sums_states, %lstm_recurrence_with_sums_last_h, %lstm_recurrence_with_sums_last_c, %lstm_recurrence_with_sums_sums, %lstm_recurrence_with_sums_cells = glow_high.lstm_recurrence_with_sums %g4, %m4, %h, %h, none, %len : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<7x2x12xf32>, tensor<7x2x3xf32>
  %gru_recurrence_with_sums_states, %gru_recurrence_with_sums_last_h, %gru_recurrence_with_sums_sums = glow_high.gru_recurrence_with_sums %g3, %m3, %h, %bias : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<7x2x9xf32>
  %rnn_recurrence_with_sums_states, %rnn_recurrence_with_sums_last_h, %rnn_recurrence_with_sums_sums = glow_high.rnn_recurrence_with_sums %g1, %m1, %h : tensor<7x2x3xf32>, tensor<2x3xf32>, tensor<7x2x3xf32>
}
