// Weights in blocks of codes, in both dialects.

// RUN: GLOW_UNCHANGED
// RUN: glow-opt %s -p glow-high-to-glow-low | filecheck %s --check-prefix=LOW

// LOW-LABEL:   glow_low.func @numbers(
glow_high.func @numbers(%c: tensor<2x3x24xui8>, %s: tensor<2x3x3xf16>, %z: tensor<2x3x3xui8>, %q: tensor<2x3x2xf16>) -> (tensor<2x3x48xf32>, tensor<2x3x96xf32>) {
  // LOW: glow_low.blockwise_dequantize @out %{{.*}}, @in %c, @in %s {bits = 4, block = 16}
  %w = glow_high.blockwise_dequantize %c, %s {bits = 4, block = 16} : tensor<2x3x48xf32>
  // A last block with fewer codes, and zero points.
  // LOW: glow_low.blockwise_dequantize @out %{{.*}}, @in %c, @in %s {bits = 4, block = 16, element = f4E2M1FN}
  %u = glow_high.blockwise_dequantize %c, %s {bits = 4, block = 16, element = f4E2M1FN} : tensor<2x3x48xf32>

  // LOW: glow_low.blockwise_dequantize @out %{{.*}}, @in %c, @in %s, @in %z {bits = 2, block = 32}
  %v = glow_high.blockwise_dequantize %c, %s, %z {bits = 2, block = 32} : tensor<2x3x96xf32>
  // Two planes, and a table.
  // LOW: glow_low.blockwise_dequantize @out %{{.*}}, @in %c, @in %q {bits = 6, block = 16}
  %p = glow_high.blockwise_dequantize %c, %q {bits = 6, block = 16} : tensor<2x3x32xf32>
  // LOW: glow_low.blockwise_dequantize @out %{{.*}}, @in %c, @in %s {bits = 4, block = 16, table = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]}
  %t = glow_high.blockwise_dequantize %c, %s {bits = 4, block = 16, table = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]} : tensor<2x3x48xf32>
  glow_high.return %w, %v
}

// LOW-LABEL:   glow_low.func @products(
glow_high.func @products(%x: tensor<1x2x48xf32>, %c: tensor<5x24xui8>, %s: tensor<5x3xf32>, %z: tensor<5x3xf32>, %b: tensor<5xf32>) -> (tensor<1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32>) {
  // LOW: glow_low.blockwise_matmul @out %{{.*}}, @in %x, @in %c, @in %s, @in none, @in none, @in %b {bits = 4, block = 16}
  %y = glow_high.blockwise_matmul %x, %c, %s, none, none, %b {bits = 4, block = 16} : tensor<1x2x5xf32>
  // LOW: glow_low.blockwise_matmul @out %{{.*}}, @in %x, @in %c, @in %s, @in %z {bits = 4, block = 16, left_bits = 8}
  %r = glow_high.blockwise_matmul %x, %c, %s, %z {bits = 4, block = 16, left_bits = 8} : tensor<1x2x5xf32>
  // Minima.
  // LOW: glow_low.blockwise_matmul @out %{{.*}}, @in %x, @in %c, @in %s, @in none, @in %z {bits = 4, block = 16, left_bits = 15}
  %m = glow_high.blockwise_matmul %x, %c, %s, none, %z {bits = 4, block = 16, left_bits = 15} : tensor<1x2x5xf32>
  glow_high.return %y, %r, %m
}

// LOW-LABEL:   glow_low.func @integers(
glow_high.func @integers(%x: tensor<1x2x48xi8>, %l: tensor<1x2x48xi8>, %d: tensor<1x2x3xf32>, %t: tensor<1x2x3xi32>, %c: tensor<5x24xui8>, %s: tensor<5x3xf16>, %z: tensor<5x3xui8>) -> (tensor<1x2x5xf32>, tensor<1x2x5xf32>) {
  // LOW: glow_low.blockwise_matmul_integer @out %{{.*}}, @in %x, @in none, @in %d, @in %t, @in %c, @in %s {bits = 4, block = 16}
  %y = glow_high.blockwise_matmul_integer %x, none, %d, %t, %c, %s {bits = 4, block = 16} : tensor<1x2x5xf32>
  // Values of 15 bits, and zero points.
  // LOW: glow_low.blockwise_matmul_integer @out %{{.*}}, @in %x, @in %l, @in %d, @in %t, @in %c, @in %s, @in %z {bits = 4, block = 16}
  %r = glow_high.blockwise_matmul_integer %x, %l, %d, %t, %c, %s, %z {bits = 4, block = 16} : tensor<1x2x5xf32>
  glow_high.return %y, %r
}
