// Quantization and its inverse, with parameters in the type and as operands, and changes of scale; in both dialects.

// RUN: GLOW_UNCHANGED
// RUN: glow-opt %s -p glow-high-to-glow-low | filecheck %s --check-prefix=LOW

// LOW-LABEL:   glow_low.func @in_types(
glow_high.func @in_types(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xui8>) {
  // LOW: glow_low.quantize @out %{{.*}}, @in %x {to = !quant.uniform<u8:f32, 0.5:128>}
  %q = glow_high.quantize %x {to = !quant.uniform<u8:f32, 0.5:128>} : tensor<2x3x!quant.uniform<u8:f32, 0.5:128>>
  // LOW: glow_low.view %{{.*}} : memref<2x3x!quant.uniform<u8:f32, 0.5:128>> to memref<2x3xui8>
  %i = glow_high.storage_cast %q {to = ui8} : tensor<2x3xui8>
  // LOW: glow_low.dequantize @out %{{.*}}, @in %{{.*}}
  %y = glow_high.dequantize %q : tensor<2x3xf32>
  glow_high.return %y, %i
}

// LOW-LABEL:   glow_low.func @as_operands(
glow_high.func @as_operands(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %z: tensor<3xi8>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xui8>) {
  // LOW: glow_low.quantize @out %{{.*}}, @in %x, @in %s, @in %z {to = i8}
  %q = glow_high.quantize %x, %s, %z {to = i8} : tensor<2x3xi8>
  // LOW: glow_low.dequantize @out %{{.*}}, @in %{{.*}}, @in %s
  %y = glow_high.dequantize %q, %s : tensor<2x3xf32>
  %w = glow_high.dequantize %q, %s, %z : tensor<2x3xf32>
  // LOW: glow_low.quantize @out %{{.*}}, @in %x, @in %s {to = ui8}
  %u = glow_high.quantize %x, %s {to = ui8} : tensor<2x3xui8>
  glow_high.return %y, %w, %u
}

// LOW-LABEL:   glow_low.func @scales(
glow_high.func @scales(%x: tensor<2x3xi32>, %m: tensor<3xf32>, %o: tensor<3xf32>, %n: tensor<3xi32>) -> (tensor<2x3xi8>, tensor<2x3xi16>) {
  // LOW: glow_low.rescale @out %{{.*}}, @in %x, @in %m, @in %o {to = !quant.uniform<i8<-127:127>:f32, 0.25:3>}
  %q = glow_high.rescale %x, %m, %o {to = !quant.uniform<i8<-127:127>:f32, 0.25:3>} : tensor<2x3x!quant.uniform<i8<-127:127>:f32, 0.25:3>>
  %i = glow_high.storage_cast %q {to = i8} : tensor<2x3xi8>
  // LOW: glow_low.integer_rescale @out %{{.*}}, @in %x, @in %n, @in %n, @in %n {to = i16}
  %j = glow_high.integer_rescale %x, %n, %n, %n {to = i16} : tensor<2x3xi16>
  // LOW: glow_low.integer_rescale @out %{{.*}}, @in %x, @in %n, @in %n {rounding = "twice", to = i16}
  %twice = glow_high.integer_rescale %x, %n, %n {rounding = "twice", to = i16} : tensor<2x3xi16>
  glow_high.return %i, %j
}

// A product of codes is that of integers less their zero points.

// LOW-LABEL:   glow_low.func @products(
glow_high.func @products(%x: tensor<2x3xui8>, %w: tensor<3x4xi8>) -> tensor<2x4xi32> {
  %q = glow_high.storage_cast %x {to = !quant.uniform<u8:f32, 0.5:128>} : tensor<2x3x!quant.uniform<u8:f32, 0.5:128>>
  // LOW: glow_low.matmul
  %y = glow_high.matmul %q, %w : tensor<2x4xi32>
  glow_high.return %y
}

// A table has an entry for each code of 8 bits.

// LOW-LABEL:   glow_low.func @tables(
glow_high.func @tables(%x: tensor<2x3xi8>, %t: tensor<256xui8>) -> tensor<2x3xui8> {
  // LOW: glow_low.lookup @out %{{.*}}, @in %x, @in %t
  %y = glow_high.lookup %x, %t : tensor<2x3xui8>
  glow_high.return %y
}
