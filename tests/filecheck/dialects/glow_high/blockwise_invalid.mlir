// Weights in blocks of codes: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: @fine
glow_high.func @fine(%c: tensor<5x24xui8>, %s: tensor<5x3xf32>) {
  %w = glow_high.blockwise_dequantize %c, %s {bits = 4, block = 16} : tensor<5x48xf32>
}

// -----

glow_high.func @main(%c: tensor<5x24xui8>, %s: tensor<5x3xf32>) {
  // expected-error@+1 {{codes have 2, 4 or 8 bits, not 3}}
  %w = glow_high.blockwise_dequantize %c, %s {bits = 3, block = 16} : tensor<5x48xf32>
}

// -----

glow_high.func @main(%c: tensor<5x24xui8>, %s: tensor<5x3xf32>) {
  // expected-error@+1 {{blocks have a power of two of codes, at least 16, not 24}}
  %w = glow_high.blockwise_dequantize %c, %s {bits = 4, block = 24} : tensor<5x48xf32>
}

// -----

glow_high.func @main(%c: tensor<5x24xui8>, %s: tensor<5x2xf32>) {
  // expected-error@+1 {{the scales of blocks have the shape (5, 3), not (5, 2)}}
  %w = glow_high.blockwise_dequantize %c, %s {bits = 4, block = 16} : tensor<5x48xf32>
}

// -----

glow_high.func @main(%c: tensor<5x24xui8>, %s: tensor<5x3xf32>, %z: tensor<5x3xi8>) {
  // expected-error@+1 {{the zero points of blocks are f32, f16, bf16, ui8, not i8}}
  %w = glow_high.blockwise_dequantize %c, %s, %z {bits = 4, block = 16} : tensor<5x48xf32>
}

// -----

glow_high.func @main(%c: tensor<5x24xi8>, %s: tensor<5x3xf32>) {
  // expected-error@+1 {{operand 'codes' at position 0 does not verify: takes ui8, not i8}}
  %w = glow_high.blockwise_dequantize %c, %s {bits = 4, block = 16} : tensor<5x48xf32>
}

// -----

glow_high.func @main(%x: tensor<2x32xf32>, %c: tensor<5x24xui8>, %s: tensor<5x3xf32>) {
  // expected-error@+1 {{the operands' inner sizes differ: 32 and 48}}
  %y = glow_high.blockwise_matmul %x, %c, %s {bits = 4, block = 16} : tensor<2x5xf32>
}

// -----

glow_high.func @main(%x: tensor<2x48xf32>, %c: tensor<5x24xui8>, %s: tensor<5x3xf32>) {
  // expected-error@+1 {{rows are rounded to 8 bits or, with 0, not at all; not to 4}}
  %y = glow_high.blockwise_matmul %x, %c, %s {bits = 4, block = 16, left_bits = 4} : tensor<2x5xf32>
}

// -----

glow_high.func @main(%x: tensor<2x48xf32>, %c: tensor<5x24xui8>, %s: tensor<5x3xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{bias must have shape (5,), not (4,)}}
  %y = glow_high.blockwise_matmul %x, %c, %s, none, %b {bits = 4, block = 16} : tensor<2x5xf32>
}

// -----

glow_high.func @codes_of_floats(%codes: tensor<2x16xf32>, %scales: tensor<2x1xf32>) {
  // expected-error@+1 {{takes ui8, not f32}}
  %y = glow_high.blockwise_dequantize %codes, %scales {bits = 8, block = 16} : tensor<2x16xf32>
  glow_high.return
}

// -----

glow_high.func @codes_of_other_floats(%codes: tensor<2x16xui8>, %scales: tensor<2x1xf32>) {
  // expected-error@+1 {{codes of 4 bits are no numbers of f8E4M3FN}}
  %y = glow_high.blockwise_dequantize %codes, %scales {bits = 4, block = 32, element = f8E4M3FN} : tensor<2x32xf32>
  glow_high.return
}

// -----

glow_high.func @floats_with_zero_points(%codes: tensor<2x16xui8>, %scales: tensor<2x1xf32>, %zeros: tensor<2x1xui8>) {
  // expected-error@+1 {{codes of floats have no zero points}}
  %y = glow_high.blockwise_dequantize %codes, %scales, %zeros {bits = 4, block = 32, element = f4E2M1FN} : tensor<2x32xf32>
  glow_high.return
}
