// Instructions on weights in blocks of codes, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_low.func @main(@in %x: memref<1x32xf32>, @in %c: memref<5x16xui8>, @in %s: memref<5x2xf32>, @in %z: memref<5x2xui8>) {
  %w = glow_low.alloc : memref<5x32xf32>
  %y = glow_low.alloc : memref<1x5xf32>
  glow_low.blockwise_dequantize @out %w, @in %c, @in %s, @in %z {bits = 4, block = 16}
  glow_low.blockwise_matmul @out %y, @in %x, @in %c, @in %s {bits = 4, block = 16}
}
