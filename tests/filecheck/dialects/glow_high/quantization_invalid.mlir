// Quantization: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: @fine
glow_high.func @fine(%x: tensor<2xf32>, %s: tensor<f32>) {
  %q = glow_high.quantize %x, %s {to = i8} : tensor<2xi8>
}

// -----

glow_high.func @main(%x: tensor<2xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{the scale is either in the type of the codes or an operand}}
  %q = glow_high.quantize %x, %s {to = !quant.uniform<u8:f32, 0.5>} : tensor<2x!quant.uniform<u8:f32, 0.5>>
}

// -----

glow_high.func @main(%x: tensor<2xf32>) {
  // expected-error@+1 {{the scale is either in the type of the codes or an operand}}
  %q = glow_high.quantize %x {to = ui8} : tensor<2xui8>
}

// -----

glow_high.func @main(%x: tensor<2xf32>, %s: tensor<f32>, %z: tensor<i8>) {
  // expected-error@+1 {{the zero point of codes of ui8 cannot be i8}}
  %q = glow_high.quantize %x, %s, %z {to = ui8} : tensor<2xui8>
}

// -----

glow_high.func @main(%x: tensor<2xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{codes are integers of one scale, not f32}}
  %q = glow_high.quantize %x, %s {to = f32} : tensor<2xf32>
}

// -----

glow_high.func @main(%x: tensor<2xui8>) {
  // expected-error@+1 {{ui8 and !quant.uniform<i8:f32, 0.5> are stored in different integers}}
  %q = glow_high.storage_cast %x {to = !quant.uniform<i8:f32, 0.5>} : tensor<2x!quant.uniform<i8:f32, 0.5>>
}

// -----

glow_high.func @main(%x: tensor<2xi32>, %m: tensor<f64>) {
  // expected-error@+1 {{multiplier and offset are f32}}
  %q = glow_high.rescale %x, %m {to = i8} : tensor<2xi8>
}

// -----

glow_high.func @main(%x: tensor<2xi8>, %t: tensor<128xi8>) {
  // expected-error@+1 {{a table has 256 entries, not 128}}
  %q = glow_high.lookup %x, %t : tensor<2xi8>
}

// -----

glow_high.func @main(%x: tensor<2xi32>, %t: tensor<256xi8>) {
  // expected-error@+1 {{a table is of codes of 8 bits, not i32}}
  %q = glow_high.lookup %x, %t : tensor<2xi8>
}
