// Elementwise functions of one operand, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @arithmetic(%x: tensor<2x3xf32>) {
  %abs = glow_high.abs %x : tensor<2x3xf32>
  %neg = glow_high.neg %x : tensor<2x3xf32>
  %sign = glow_high.sign %x : tensor<2x3xf32>
  %reciprocal = glow_high.reciprocal %x : tensor<2x3xf32>
  %sqrt = glow_high.sqrt %x : tensor<2x3xf32>
  %exp = glow_high.exp %x : tensor<2x3xf32>
  %expm1 = glow_high.expm1 %x : tensor<2x3xf32>
  %log = glow_high.log %x : tensor<2x3xf32>
  %log1p = glow_high.log1p %x : tensor<2x3xf32>
  %erf = glow_high.erf %x : tensor<2x3xf32>
}

glow_high.func @rounding(%x: tensor<2x3xf32>) {
  %ceil = glow_high.ceil %x : tensor<2x3xf32>
  %floor = glow_high.floor %x : tensor<2x3xf32>
  %round = glow_high.round %x : tensor<2x3xf32>
}

glow_high.func @trigonometry(%x: tensor<2x3xf32>) {
  %sin = glow_high.sin %x : tensor<2x3xf32>
  %cos = glow_high.cos %x : tensor<2x3xf32>
  %tan = glow_high.tan %x : tensor<2x3xf32>
  %asin = glow_high.asin %x : tensor<2x3xf32>
  %acos = glow_high.acos %x : tensor<2x3xf32>
  %atan = glow_high.atan %x : tensor<2x3xf32>
  %sinh = glow_high.sinh %x : tensor<2x3xf32>
  %cosh = glow_high.cosh %x : tensor<2x3xf32>
  %asinh = glow_high.asinh %x : tensor<2x3xf32>
  %acosh = glow_high.acosh %x : tensor<2x3xf32>
  %atanh = glow_high.atanh %x : tensor<2x3xf32>
}

glow_high.func @integers(%i: tensor<2x3xi32>) {
  %abs = glow_high.abs %i : tensor<2x3xi32>
  %neg = glow_high.neg %i : tensor<2x3xi32>
  %sign = glow_high.sign %i : tensor<2x3xi32>
  %bitwise_not = glow_high.bitwise_not %i : tensor<2x3xi32>
}

glow_high.func @truth(%x: tensor<2x3xf32>, %p: tensor<2x3xi1>) {
  %not = glow_high.not %p : tensor<2x3xi1>
  %is_nan = glow_high.is_nan %x : tensor<2x3xi1>
  %is_inf = glow_high.is_inf %x : tensor<2x3xi1>
  %is_inf_1 = glow_high.is_inf %x {positive = false} : tensor<2x3xi1>
  %is_inf_2 = glow_high.is_inf %x {negative = false} : tensor<2x3xi1>
}

glow_high.func @casts(%x: tensor<2x3xf32>, %i: tensor<2x3xi32>, %p: tensor<2x3xi1>) {
  %cast = glow_high.cast %x {to = i32} : tensor<2x3xi32>
  %cast_1 = glow_high.cast %i {to = ui8} : tensor<2x3xui8>
  %cast_2 = glow_high.cast %p {to = f32} : tensor<2x3xf32>
  %cast_3 = glow_high.cast %x {to = i1} : tensor<2x3xi1>
  %cast_4 = glow_high.cast %x {to = f64} : tensor<2x3xf64>
  %bit_cast = glow_high.bit_cast %x {to = ui32} : tensor<2x3xui32>
  %bit_cast_1 = glow_high.bit_cast %p {to = i8} : tensor<2x3xi8>
}
