// Elementwise operators of two and three operands, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @arithmetic(%x: tensor<2x3xf32>, %y: tensor<3xf32>, %i: tensor<2x3xi32>, %j: tensor<3xi32>) {
  %add = glow_high.add %x, %y : tensor<2x3xf32>
  %sub = glow_high.sub %x, %y : tensor<2x3xf32>
  %mul = glow_high.mul %x, %y : tensor<2x3xf32>
  %div = glow_high.div %x, %y : tensor<2x3xf32>
  %mod = glow_high.mod %x, %y : tensor<2x3xf32>
  %mod_1 = glow_high.mod %i, %j {fmod = true} : tensor<2x3xi32>
  %pow = glow_high.pow %x, %y : tensor<2x3xf32>
  %pow_1 = glow_high.pow %x, %j : tensor<2x3xf32>
  %max = glow_high.max %x, %y : tensor<2x3xf32>
  %min = glow_high.min %i, %j : tensor<2x3xi32>
}

glow_high.func @comparison(%x: tensor<2x3xf32>, %y: tensor<3xf32>, %p: tensor<2x3xi1>, %q: tensor<3xi1>) {
  %equal = glow_high.equal %x, %y : tensor<2x3xi1>
  %equal_1 = glow_high.equal %p, %q : tensor<2x3xi1>
  %less = glow_high.less %x, %y : tensor<2x3xi1>
  %less_or_equal = glow_high.less_or_equal %x, %y : tensor<2x3xi1>
  %greater = glow_high.greater %x, %y : tensor<2x3xi1>
  %greater_or_equal = glow_high.greater_or_equal %x, %y : tensor<2x3xi1>
}

glow_high.func @logic(%p: tensor<2x3xi1>, %q: tensor<3xi1>, %i: tensor<2x3xi32>, %j: tensor<3xi32>) {
  %and = glow_high.and %p, %q : tensor<2x3xi1>
  %or = glow_high.or %p, %q : tensor<2x3xi1>
  %xor = glow_high.xor %p, %q : tensor<2x3xi1>
  %bitwise_and = glow_high.bitwise_and %i, %j : tensor<2x3xi32>
  %bitwise_or = glow_high.bitwise_or %i, %j : tensor<2x3xi32>
  %bitwise_xor = glow_high.bitwise_xor %i, %j : tensor<2x3xi32>
  %bit_shift = glow_high.bit_shift %i, %j : tensor<2x3xi32>
  %bit_shift_1 = glow_high.bit_shift %i, %j {direction = "right"} : tensor<2x3xi32>
}

glow_high.func @choice(%x: tensor<2x3xf32>, %y: tensor<3xf32>, %p: tensor<2x3xi1>) {
  %where = glow_high.where %p, %x, %y : tensor<2x3xf32>
  %clip = glow_high.clip %x, %y, %y : tensor<2x3xf32>
  %clip_1 = glow_high.clip %x, none, %y : tensor<2x3xf32>
  %clip_2 = glow_high.clip %x, %y : tensor<2x3xf32>
  %clip_3 = glow_high.clip %x : tensor<2x3xf32>
}
