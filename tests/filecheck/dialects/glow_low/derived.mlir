// Instructions that are derived from operators, with and without optional operands, in front of others and behind them.
// tests/test_operators.py has every instruction.

// RUN: GLOW_UNCHANGED

glow_low.func @elementwise_binary_choice(@in %x: memref<2x3xf32>, @in %y: memref<3xf32>, @in %p: memref<2x3xi1>) {
  %out = glow_low.alloc : memref<2x3xf32>
  glow_low.where @out %out, @in %p, @in %x, @in %y
  glow_low.clip @out %out, @in %x, @in %y, @in %y
  glow_low.clip @out %out, @in %x, @in none, @in %y
  glow_low.clip @out %out, @in %x, @in %y
  glow_low.clip @out %out, @in %x
}

glow_low.func @convolution_conv(@in %image: memref<1x8x8x4xf32>, @in %filter: memref<6x3x3x4xf32>, @in %bias: memref<6xf32>) {
  %out = glow_low.alloc : memref<1x6x6x6xf32>
  glow_low.conv @out %out, @in %image, @in %filter
  %out1 = glow_low.alloc : memref<1x4x3x6xf32>
  glow_low.conv @out %out1, @in %image, @in %filter, @in %bias {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 2]}
}

glow_low.func @convolution_conv_transpose(@in %image: memref<1x8x8x4xf32>, @in %up: memref<4x2x2x6xf32>, @in %bias: memref<6xf32>) {
  %out = glow_low.alloc : memref<1x9x9x6xf32>
  glow_low.conv_transpose @out %out, @in %image, @in %up
  %out1 = glow_low.alloc : memref<1x17x16x6xf32>
  glow_low.conv_transpose @out %out1, @in %image, @in %up, @in %bias {strides = [2, 2], pads = [1, 0, 0, 1], dilations = [2, 1], output_padding = [1, 1]}
}

glow_low.func @linear_matmul(@in %a: memref<5x2x3xf32>, @in %b: memref<3x4xf32>, @in %bias: memref<4xf32>) {
  %out = glow_low.alloc : memref<5x2x4xf32>
  glow_low.matmul @out %out, @in %a, @in %b
  glow_low.matmul @out %out, @in %a, @in %b, @in %bias
}

glow_low.func @attention(@in %x: memref<2x5x6xf32>, @in %mask: memref<5x5xf32>) {
  %out = glow_low.alloc : memref<2x5x6xf32>
  glow_low.attention @out %out, @in %x, @in %x, @in %x {causal = true}
  glow_low.attention @out %out, @in %x, @in %x, @in %x, @in %mask {scale = 0.5}
}

glow_low.func @normalization_statistics(@in %x: memref<2x5x5x6xf32>, @in %c: memref<6xf32>) {
  %out = glow_low.alloc : memref<2x5x5x6xf32>
  glow_low.batch_normalization @out %out, @in %x, @in %c, @in %c, @in %c, @in %c
  glow_low.instance_normalization @out %out, @in %x, @in %c, @in %c
  glow_low.group_normalization @out %out, @in %x, @in %c, @in %c {groups = 3}
  glow_low.layer_normalization @out %out, @in %x, @in %c
  glow_low.layer_normalization @out %out, @in %x, @in %c, @in %c {axis = -2, epsilon = 1.0e-12}
  glow_low.rms_normalization @out %out, @in %x, @in %c
}

glow_low.func @recurrent_lstm(@in %x: memref<7x2x5xf32>, @in %xb: memref<2x7x5xf32>, @in %len: memref<2xi32>, @in %w4: memref<1x12x5xf32>, @in %r4: memref<1x12x3xf32>, @in %b4: memref<1x24xf32>, @in %s1: memref<1x2x3xf32>, @in %sb: memref<2x1x3xf32>, @in %p4: memref<1x9xf32>) {
  %out = glow_low.alloc : memref<7x1x2x3xf32>
  %out1 = glow_low.alloc : memref<1x2x3xf32>
  %out2 = glow_low.alloc : memref<1x2x3xf32>
  glow_low.lstm @out %out, @out %out1, @out %out2, @in %x, @in %w4, @in %r4
  glow_low.lstm @out %out, @out %out1, @out %out2, @in %x, @in %w4, @in %r4, @in %b4, @in %len, @in %s1, @in %s1, @in %p4 {input_forget = true, clip = 3.0}
  %out3 = glow_low.alloc : memref<2x7x1x3xf32>
  %out4 = glow_low.alloc : memref<2x1x3xf32>
  %out5 = glow_low.alloc : memref<2x1x3xf32>
  glow_low.lstm @out %out3, @out %out4, @out %out5, @in %xb, @in %w4, @in %r4, @in none, @in none, @in %sb, @in %sb {direction = "reverse", batch_first = true}
}

glow_low.func @recurrent_gru(@in %x: memref<7x2x5xf32>, @in %len: memref<2xi32>, @in %w3: memref<1x9x5xf32>, @in %r3: memref<1x9x3xf32>, @in %b3: memref<1x18xf32>, @in %s1: memref<1x2x3xf32>) {
  %out = glow_low.alloc : memref<7x1x2x3xf32>
  %out1 = glow_low.alloc : memref<1x2x3xf32>
  glow_low.gru @out %out, @out %out1, @in %x, @in %w3, @in %r3
  glow_low.gru @out %out, @out %out1, @in %x, @in %w3, @in %r3, @in %b3, @in %len, @in %s1 {direction = "reverse", linear_before_reset = true}
}

glow_low.func @recurrent_rnn(@in %x: memref<7x2x5xf32>, @in %len: memref<2xi32>, @in %w1: memref<1x3x5xf32>, @in %r1: memref<1x3x3xf32>, @in %b1: memref<1x6xf32>, @in %s1: memref<1x2x3xf32>) {
  %out = glow_low.alloc : memref<7x1x2x3xf32>
  %out1 = glow_low.alloc : memref<1x2x3xf32>
  glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1
  glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1, @in %b1, @in none, @in %s1 {activations = ["relu"], clip = 2.0}
  glow_low.rnn @out %out, @out %out1, @in %x, @in %w1, @in %r1, @in none, @in %len
}

glow_low.func @recurrent_recurrences(@in %g4: memref<7x2x12xf32>, @in %m4: memref<3x12xf32>, @in %g3: memref<7x2x9xf32>, @in %m3: memref<3x9xf32>, @in %g1: memref<7x2x3xf32>, @in %m1: memref<3x3xf32>, @in %h: memref<2x3xf32>, @in %peep: memref<9xf32>, @in %bias: memref<3xf32>, @in %len: memref<2xi32>) {
  %out = glow_low.alloc : memref<7x2x3xf32>
  %out1 = glow_low.alloc : memref<2x3xf32>
  %out2 = glow_low.alloc : memref<2x3xf32>
  glow_low.lstm_recurrence @out %out, @out %out1, @out %out2, @in %g4, @in %m4, @in %h, @in %h
  glow_low.lstm_recurrence @out %out, @out %out1, @out %out2, @in %g4, @in %m4, @in %h, @in %h, @in %peep, @in %len {reverse = true, input_forget = true, clip = 3.0}
  glow_low.lstm_recurrence @out %out, @out %out1, @out %out2, @in %g4, @in %m4, @in %h, @in %h, @in none, @in %len {activations = ["hard_sigmoid", "tanh", "relu"], alphas = [0.25, 0.0, 0.0], betas = [0.5, 0.0, 0.0]}
  glow_low.gru_recurrence @out %out, @out %out1, @in %g3, @in %m3, @in %h
  glow_low.gru_recurrence @out %out, @out %out1, @in %g3, @in %m3, @in %h, @in %bias, @in %len {reverse = true}
  glow_low.rnn_recurrence @out %out, @out %out1, @in %g1, @in %m1, @in %h
  glow_low.rnn_recurrence @out %out, @out %out1, @in %g1, @in %m1, @in %h, @in %len {activations = ["relu"]}
}
