// Instructions on codes, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_low.func @main(@in %x: memref<4xf32>, @in %i: memref<4xi32>, @in %s: memref<4xf32>, @in %n: memref<4xi32>, @in %t: memref<256xui8>) {
  %q = glow_low.alloc : memref<4x!quant.uniform<u8:f32, 0.5:128>>
  %b = glow_low.alloc : memref<4xui8>
  %y = glow_low.alloc : memref<4xf32>
  glow_low.quantize @out %q, @in %x {to = !quant.uniform<u8:f32, 0.5:128>}
  glow_low.quantize @out %b, @in %x, @in %s {to = ui8}
  glow_low.dequantize @out %y, @in %q
  glow_low.storage_cast @out %b, @in %q {to = ui8}
  glow_low.rescale @out %q, @in %i, @in %s, @in %x {to = !quant.uniform<u8:f32, 0.5:128>}
  glow_low.integer_rescale @out %b, @in %i, @in %n, @in %n {to = ui8}
  glow_low.lookup @out %b, @in %q, @in %t
}
