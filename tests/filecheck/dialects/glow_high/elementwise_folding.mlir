// Simplifications of elementwise operators.

// RUN: glow-opt %s -p canonicalize | filecheck %s

glow_high.placeholder @v : tensor<2x3xf32> {input}
glow_high.placeholder @y_2x3xf32 : tensor<2x3xf32> {output}
glow_high.placeholder @n : tensor<2x3xi32> {input}
glow_high.placeholder @y_2x3xi32 : tensor<2x3xi32> {output}
glow_high.placeholder @y_4x2x3xf32 : tensor<4x2x3xf32> {output}
glow_high.placeholder @b : tensor<2x3xi1> {input}
glow_high.placeholder @y_2x3xi1 : tensor<2x3xi1> {output}
glow_high.placeholder @w : tensor<3xf32> {input}

// Adding zero changes nothing.
// CHECK-LABEL: glow_high.func @add_of_zero(@v, @y_2x3xf32)
glow_high.func @add_of_zero(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %v, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %s = glow_high.splat {value = 0.0} : tensor<f32>
  %0 = glow_high.add %v, %s : tensor<2x3xf32>
  glow_high.save %0, @y_2x3xf32
}

// On either side.
// CHECK-LABEL: glow_high.func @zero_and_add(@n, @y_2x3xi32)
glow_high.func @zero_and_add(@n, @y_2x3xi32) {
  // CHECK-NEXT: %n = glow_high.get @n : tensor<2x3xi32>
  // CHECK-NEXT: glow_high.save %n, @y_2x3xi32
  %n = glow_high.get @n : tensor<2x3xi32>
  %s = glow_high.splat {value = 0 : i32} : tensor<2x3xi32>
  %0 = glow_high.add %s, %n : tensor<2x3xi32>
  glow_high.save %0, @y_2x3xi32
}

// Adding one does.
// CHECK-LABEL: glow_high.func @add_of_one(@v, @y_2x3xf32)
glow_high.func @add_of_one(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: %s = glow_high.splat {value = 1.0} : tensor<f32>
  // CHECK-NEXT: %0 = glow_high.add %v, %s : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %0, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %s = glow_high.splat {value = 1.0} : tensor<f32>
  %0 = glow_high.add %v, %s : tensor<2x3xf32>
  glow_high.save %0, @y_2x3xf32
}

// Adding zero to what it broadcasts does.
// CHECK-LABEL: glow_high.func @add_of_wide_zero(@v, @y_4x2x3xf32)
glow_high.func @add_of_wide_zero(@v, @y_4x2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: %s = glow_high.splat {value = 0.0} : tensor<4x2x3xf32>
  // CHECK-NEXT: %0 = glow_high.add %v, %s : tensor<4x2x3xf32>
  // CHECK-NEXT: glow_high.save %0, @y_4x2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %s = glow_high.splat {value = 0.0} : tensor<4x2x3xf32>
  %0 = glow_high.add %v, %s : tensor<4x2x3xf32>
  glow_high.save %0, @y_4x2x3xf32
}

// Subtracting zero changes nothing.
// CHECK-LABEL: glow_high.func @sub_of_zero(@v, @y_2x3xf32)
glow_high.func @sub_of_zero(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %v, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %s = glow_high.splat {value = 0.0} : tensor<f32>
  %0 = glow_high.sub %v, %s : tensor<2x3xf32>
  glow_high.save %0, @y_2x3xf32
}

// Subtracting from zero does.
// CHECK-LABEL: glow_high.func @zero_and_sub(@v, @y_2x3xf32)
glow_high.func @zero_and_sub(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: %s = glow_high.splat {value = 0.0} : tensor<f32>
  // CHECK-NEXT: %0 = glow_high.sub %s, %v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %0, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %s = glow_high.splat {value = 0.0} : tensor<f32>
  %0 = glow_high.sub %s, %v : tensor<2x3xf32>
  glow_high.save %0, @y_2x3xf32
}

// A factor of one changes nothing.
// CHECK-LABEL: glow_high.func @mul_by_one(@v, @y_2x3xf32)
glow_high.func @mul_by_one(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %v, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %s = glow_high.splat {value = 1.0} : tensor<f32>
  %0 = glow_high.mul %s, %v : tensor<2x3xf32>
  glow_high.save %0, @y_2x3xf32
}

// A factor of zero is kept, for the sake of NaN.
// CHECK-LABEL: glow_high.func @mul_by_zero(@v, @y_2x3xf32)
glow_high.func @mul_by_zero(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: %s = glow_high.splat {value = 0.0} : tensor<f32>
  // CHECK-NEXT: %0 = glow_high.mul %s, %v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %0, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %s = glow_high.splat {value = 0.0} : tensor<f32>
  %0 = glow_high.mul %s, %v : tensor<2x3xf32>
  glow_high.save %0, @y_2x3xf32
}

// Dividing by one changes nothing.
// CHECK-LABEL: glow_high.func @div_by_one(@n, @y_2x3xi32)
glow_high.func @div_by_one(@n, @y_2x3xi32) {
  // CHECK-NEXT: %n = glow_high.get @n : tensor<2x3xi32>
  // CHECK-NEXT: glow_high.save %n, @y_2x3xi32
  %n = glow_high.get @n : tensor<2x3xi32>
  %s = glow_high.splat {value = 1 : i32} : tensor<i32>
  %0 = glow_high.div %n, %s : tensor<2x3xi32>
  glow_high.save %0, @y_2x3xi32
}

// Dividing one does.
// CHECK-LABEL: glow_high.func @one_and_div(@n, @y_2x3xi32)
glow_high.func @one_and_div(@n, @y_2x3xi32) {
  // CHECK-NEXT: %n = glow_high.get @n : tensor<2x3xi32>
  // CHECK-NEXT: %s = glow_high.splat {value = 1 : i32} : tensor<i32>
  // CHECK-NEXT: %0 = glow_high.div %s, %n : tensor<2x3xi32>
  // CHECK-NEXT: glow_high.save %0, @y_2x3xi32
  %n = glow_high.get @n : tensor<2x3xi32>
  %s = glow_high.splat {value = 1 : i32} : tensor<i32>
  %0 = glow_high.div %s, %n : tensor<2x3xi32>
  glow_high.save %0, @y_2x3xi32
}

// The first power changes nothing.
// CHECK-LABEL: glow_high.func @pow_of_one(@v, @y_2x3xf32)
glow_high.func @pow_of_one(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %v, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %s = glow_high.splat {value = 1.0} : tensor<f32>
  %0 = glow_high.pow %v, %s : tensor<2x3xf32>
  glow_high.save %0, @y_2x3xf32
}

// `and` with true changes nothing.
// CHECK-LABEL: glow_high.func @and_of_true(@b, @y_2x3xi1)
glow_high.func @and_of_true(@b, @y_2x3xi1) {
  // CHECK-NEXT: %b = glow_high.get @b : tensor<2x3xi1>
  // CHECK-NEXT: glow_high.save %b, @y_2x3xi1
  %b = glow_high.get @b : tensor<2x3xi1>
  %s = glow_high.splat {value = true} : tensor<i1>
  %0 = glow_high.and %b, %s : tensor<2x3xi1>
  glow_high.save %0, @y_2x3xi1
}

// `and` with false is false.
// CHECK-LABEL: glow_high.func @and_of_false(@b, @y_2x3xi1)
glow_high.func @and_of_false(@b, @y_2x3xi1) {
  // CHECK-NEXT: %[[FALSE:.*]] = glow_high.splat {value = false} : tensor<2x3xi1>
  // CHECK-NEXT: glow_high.save %[[FALSE]], @y_2x3xi1
  %b = glow_high.get @b : tensor<2x3xi1>
  %s = glow_high.splat {value = false} : tensor<i1>
  %0 = glow_high.and %b, %s : tensor<2x3xi1>
  glow_high.save %0, @y_2x3xi1
}

// `or` with false changes nothing.
// CHECK-LABEL: glow_high.func @or_of_false(@b, @y_2x3xi1)
glow_high.func @or_of_false(@b, @y_2x3xi1) {
  // CHECK-NEXT: %b = glow_high.get @b : tensor<2x3xi1>
  // CHECK-NEXT: glow_high.save %b, @y_2x3xi1
  %b = glow_high.get @b : tensor<2x3xi1>
  %s = glow_high.splat {value = false} : tensor<i1>
  %0 = glow_high.or %s, %b : tensor<2x3xi1>
  glow_high.save %0, @y_2x3xi1
}

// `xor` with false changes nothing.
// CHECK-LABEL: glow_high.func @xor_of_false(@b, @y_2x3xi1)
glow_high.func @xor_of_false(@b, @y_2x3xi1) {
  // CHECK-NEXT: %b = glow_high.get @b : tensor<2x3xi1>
  // CHECK-NEXT: glow_high.save %b, @y_2x3xi1
  %b = glow_high.get @b : tensor<2x3xi1>
  %s = glow_high.splat {value = false} : tensor<i1>
  %0 = glow_high.xor %b, %s : tensor<2x3xi1>
  glow_high.save %0, @y_2x3xi1
}

// Bits with zero change nothing.
// CHECK-LABEL: glow_high.func @bits_and_zero(@n, @y_2x3xi32)
glow_high.func @bits_and_zero(@n, @y_2x3xi32) {
  // CHECK-NEXT: %n = glow_high.get @n : tensor<2x3xi32>
  // CHECK-NEXT: glow_high.save %n, @y_2x3xi32
  %n = glow_high.get @n : tensor<2x3xi32>
  %s = glow_high.splat {value = 0 : i32} : tensor<i32>
  %0 = glow_high.bitwise_or %n, %s : tensor<2x3xi32>
  %1 = glow_high.bitwise_xor %s, %0 : tensor<2x3xi32>
  %2 = glow_high.bit_shift %1, %s : tensor<2x3xi32>
  glow_high.save %2, @y_2x3xi32
}

// Negation undoes itself.
// CHECK-LABEL: glow_high.func @neg_of_neg(@v, @y_2x3xf32)
glow_high.func @neg_of_neg(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %v, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %0 = glow_high.neg %v : tensor<2x3xf32>
  %1 = glow_high.neg %0 : tensor<2x3xf32>
  glow_high.save %1, @y_2x3xf32
}

// So does `not`.
// CHECK-LABEL: glow_high.func @not_of_not(@b, @y_2x3xi1)
glow_high.func @not_of_not(@b, @y_2x3xi1) {
  // CHECK-NEXT: %b = glow_high.get @b : tensor<2x3xi1>
  // CHECK-NEXT: glow_high.save %b, @y_2x3xi1
  %b = glow_high.get @b : tensor<2x3xi1>
  %0 = glow_high.not %b : tensor<2x3xi1>
  %1 = glow_high.not %0 : tensor<2x3xi1>
  glow_high.save %1, @y_2x3xi1
}

// A reciprocal rounds, and does not.
// CHECK-LABEL: glow_high.func @reciprocal_twice(@v, @y_2x3xf32)
glow_high.func @reciprocal_twice(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: %0 = glow_high.reciprocal %v : tensor<2x3xf32>
  // CHECK-NEXT: %1 = glow_high.reciprocal %0 : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %1, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %0 = glow_high.reciprocal %v : tensor<2x3xf32>
  %1 = glow_high.reciprocal %0 : tensor<2x3xf32>
  glow_high.save %1, @y_2x3xf32
}

// A second ReLU changes nothing.
// CHECK-LABEL: glow_high.func @relu_of_relu(@v, @y_2x3xf32)
glow_high.func @relu_of_relu(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: %0 = glow_high.relu %v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %0, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %0 = glow_high.relu %v : tensor<2x3xf32>
  %1 = glow_high.relu %0 : tensor<2x3xf32>
  glow_high.save %1, @y_2x3xf32
}

// Whole numbers need no rounding.
// CHECK-LABEL: glow_high.func @round_of_floor(@v, @y_2x3xf32)
glow_high.func @round_of_floor(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: %0 = glow_high.floor %v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %0, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %0 = glow_high.floor %v : tensor<2x3xf32>
  %1 = glow_high.round %0 : tensor<2x3xf32>
  %2 = glow_high.ceil %1 : tensor<2x3xf32>
  glow_high.save %2, @y_2x3xf32
}

// A second tanh counts.
// CHECK-LABEL: glow_high.func @tanh_of_tanh(@v, @y_2x3xf32)
glow_high.func @tanh_of_tanh(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: %0 = glow_high.tanh %v : tensor<2x3xf32>
  // CHECK-NEXT: %1 = glow_high.tanh %0 : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %1, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %0 = glow_high.tanh %v : tensor<2x3xf32>
  %1 = glow_high.tanh %0 : tensor<2x3xf32>
  glow_high.save %1, @y_2x3xf32
}

// A cast to the same type is gone.
// CHECK-LABEL: glow_high.func @cast_to_same(@v, @y_2x3xf32)
glow_high.func @cast_to_same(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %v, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %0 = glow_high.cast %v {to = f32} : tensor<2x3xf32>
  glow_high.save %0, @y_2x3xf32
}

// A cast there and back stays.
// CHECK-LABEL: glow_high.func @cast_and_back(@v, @y_2x3xf32)
glow_high.func @cast_and_back(@v, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: %0 = glow_high.cast %v {to = i32} : tensor<2x3xi32>
  // CHECK-NEXT: %1 = glow_high.cast %0 {to = f32} : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %1, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %0 = glow_high.cast %v {to = i32} : tensor<2x3xi32>
  %1 = glow_high.cast %0 {to = f32} : tensor<2x3xf32>
  glow_high.save %1, @y_2x3xf32
}

// An operand that is broadcast anyway needs no expand.
// CHECK-LABEL: glow_high.func @expand_and_add(@v, @w, @y_2x3xf32)
glow_high.func @expand_and_add(@v, @w, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: %w = glow_high.get @w : tensor<3xf32>
  // CHECK-NEXT: %0 = glow_high.add %v, %w : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %0, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %w = glow_high.get @w : tensor<3xf32>
  %0 = glow_high.expand %w {shape = [2, 3]} : tensor<2x3xf32>
  %1 = glow_high.add %v, %0 : tensor<2x3xf32>
  glow_high.save %1, @y_2x3xf32
}

// Where it makes the result longer, it stays.
// CHECK-LABEL: glow_high.func @expand_and_relu(@w, @y_2x3xf32)
glow_high.func @expand_and_relu(@w, @y_2x3xf32) {
  // CHECK-NEXT: %w = glow_high.get @w : tensor<3xf32>
  // CHECK-NEXT: %0 = glow_high.expand %w {shape = [2, 3]} : tensor<2x3xf32>
  // CHECK-NEXT: %1 = glow_high.relu %0 : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %1, @y_2x3xf32
  %w = glow_high.get @w : tensor<3xf32>
  %0 = glow_high.expand %w {shape = [2, 3]} : tensor<2x3xf32>
  %1 = glow_high.relu %0 : tensor<2x3xf32>
  glow_high.save %1, @y_2x3xf32
}

// Of two expands one is enough.
// CHECK-LABEL: glow_high.func @expand_twice_and_add(@w, @y_2x3xf32)
glow_high.func @expand_twice_and_add(@w, @y_2x3xf32) {
  // CHECK-NEXT: %w = glow_high.get @w : tensor<3xf32>
  // CHECK-NEXT: %0 = glow_high.expand %w {shape = [2, 3]} : tensor<2x3xf32>
  // CHECK-NEXT: %1 = glow_high.add %w, %0 : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %1, @y_2x3xf32
  %w = glow_high.get @w : tensor<3xf32>
  %0 = glow_high.expand %w {shape = [2, 3]} : tensor<2x3xf32>
  %1 = glow_high.add %0, %0 : tensor<2x3xf32>
  glow_high.save %1, @y_2x3xf32
}

// What is the same whatever the other operand is: integers alone, since a float may be NaN.
// CHECK-LABEL: glow_high.func @times_zero(@n, @y_2x3xi32)
glow_high.func @times_zero(@n, @y_2x3xi32) {
  // CHECK-NEXT: %[[ZERO:.*]] = glow_high.splat {value = 0 : i32} : tensor<2x3xi32>
  // CHECK-NEXT: glow_high.save %[[ZERO]], @y_2x3xi32
  %n = glow_high.get @n : tensor<2x3xi32>
  %s = glow_high.splat {value = 0 : i32} : tensor<i32>
  %0 = glow_high.mul %s, %n : tensor<2x3xi32>
  glow_high.save %0, @y_2x3xi32
}

// CHECK-LABEL: glow_high.func @or_of_true(@b, @y_2x3xi1)
glow_high.func @or_of_true(@b, @y_2x3xi1) {
  // CHECK-NEXT: %[[TRUE:.*]] = glow_high.splat {value = true} : tensor<2x3xi1>
  // CHECK-NEXT: glow_high.save %[[TRUE]], @y_2x3xi1
  %b = glow_high.get @b : tensor<2x3xi1>
  %s = glow_high.splat {value = true} : tensor<i1>
  %0 = glow_high.or %b, %s : tensor<2x3xi1>
  glow_high.save %0, @y_2x3xi1
}

// CHECK-LABEL: glow_high.func @sub_of_itself(@n, @y_2x3xi32)
glow_high.func @sub_of_itself(@n, @y_2x3xi32) {
  // CHECK-NEXT: glow_high.splat {value = 0 : i32} : tensor<2x3xi32>
  %n = glow_high.get @n : tensor<2x3xi32>
  %0 = glow_high.sub %n, %n : tensor<2x3xi32>
  glow_high.save %0, @y_2x3xi32
}

// CHECK-LABEL: glow_high.func @sub_of_float_itself(@v, @y_2x3xf32)
glow_high.func @sub_of_float_itself(@v, @y_2x3xf32) {
  // CHECK: glow_high.sub %v, %v : tensor<2x3xf32>
  %v = glow_high.get @v : tensor<2x3xf32>
  %0 = glow_high.sub %v, %v : tensor<2x3xf32>
  glow_high.save %0, @y_2x3xf32
}

// The larger of two that are the same, and a choice between them.
// CHECK-LABEL: glow_high.func @same(@v, @b, @y_2x3xf32)
glow_high.func @same(@v, @b, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %v, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %b = glow_high.get @b : tensor<2x3xi1>
  %0 = glow_high.max %v, %v : tensor<2x3xf32>
  %1 = glow_high.where %b, %0, %0 : tensor<2x3xf32>
  glow_high.save %1, @y_2x3xf32
}

// A choice that is known.
// CHECK-LABEL: glow_high.func @known_choice(@v, @w, @y_2x3xf32)
glow_high.func @known_choice(@v, @w, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %v, @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %w = glow_high.get @w : tensor<3xf32>
  %s = glow_high.splat {value = false} : tensor<i1>
  %0 = glow_high.where %s, %w, %v : tensor<2x3xf32>
  glow_high.save %0, @y_2x3xf32
}

// Adding the opposite is subtracting; a product with -1 is the opposite.
// CHECK-LABEL: glow_high.func @add_of_neg(@v, @w, @y_2x3xf32)
glow_high.func @add_of_neg(@v, @w, @y_2x3xf32) {
  // CHECK-NEXT: %v = glow_high.get @v : tensor<2x3xf32>
  // CHECK-NEXT: %w = glow_high.get @w : tensor<3xf32>
  // CHECK-NEXT: %[[DIFFERENCE:.*]] = glow_high.sub %w, %v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.save %[[DIFFERENCE]], @y_2x3xf32
  %v = glow_high.get @v : tensor<2x3xf32>
  %w = glow_high.get @w : tensor<3xf32>
  %s = glow_high.splat {value = -1.0} : tensor<1xf32>
  %0 = glow_high.mul %v, %s : tensor<2x3xf32>
  %1 = glow_high.add %0, %w : tensor<2x3xf32>
  glow_high.save %1, @y_2x3xf32
}
