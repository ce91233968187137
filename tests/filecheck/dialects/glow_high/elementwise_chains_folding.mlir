// Simplifications of elementwise operators behind each other, and of equal operands.

// RUN: glow-opt %s -p canonicalize | filecheck %s

// Negation undoes itself.
// CHECK-LABEL: glow_high.func @neg_of_neg(
glow_high.func @neg_of_neg(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: glow_high.return %v
  %0 = glow_high.neg %v : tensor<2x3xf32>
  %1 = glow_high.neg %0 : tensor<2x3xf32>
  glow_high.return %1
}

// So does `not`.
// CHECK-LABEL: glow_high.func @not_of_not(
glow_high.func @not_of_not(%b: tensor<2x3xi1>) -> tensor<2x3xi1> {
  // CHECK-NEXT: glow_high.return %b
  %0 = glow_high.not %b : tensor<2x3xi1>
  %1 = glow_high.not %0 : tensor<2x3xi1>
  glow_high.return %1
}

// A reciprocal rounds, and does not.
// CHECK-LABEL: glow_high.func @reciprocal_twice(
glow_high.func @reciprocal_twice(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %0 = glow_high.reciprocal %v : tensor<2x3xf32>
  // CHECK-NEXT: %1 = glow_high.reciprocal %0 : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.return %1
  %0 = glow_high.reciprocal %v : tensor<2x3xf32>
  %1 = glow_high.reciprocal %0 : tensor<2x3xf32>
  glow_high.return %1
}

// A second ReLU changes nothing.
// CHECK-LABEL: glow_high.func @relu_of_relu(
glow_high.func @relu_of_relu(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %0 = glow_high.relu %v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.relu %v : tensor<2x3xf32>
  %1 = glow_high.relu %0 : tensor<2x3xf32>
  glow_high.return %1
}

// Whole numbers need no rounding.
// CHECK-LABEL: glow_high.func @round_of_floor(
glow_high.func @round_of_floor(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %0 = glow_high.floor %v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.floor %v : tensor<2x3xf32>
  %1 = glow_high.round %0 : tensor<2x3xf32>
  %2 = glow_high.ceil %1 : tensor<2x3xf32>
  glow_high.return %2
}

// A second tanh counts.
// CHECK-LABEL: glow_high.func @tanh_of_tanh(
glow_high.func @tanh_of_tanh(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %0 = glow_high.tanh %v : tensor<2x3xf32>
  // CHECK-NEXT: %1 = glow_high.tanh %0 : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.return %1
  %0 = glow_high.tanh %v : tensor<2x3xf32>
  %1 = glow_high.tanh %0 : tensor<2x3xf32>
  glow_high.return %1
}

// A cast to the same type is gone.
// CHECK-LABEL: glow_high.func @cast_to_same(
glow_high.func @cast_to_same(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: glow_high.return %v
  %0 = glow_high.cast %v {to = f32} : tensor<2x3xf32>
  glow_high.return %0
}

// A cast there and back stays.
// CHECK-LABEL: glow_high.func @cast_and_back(
glow_high.func @cast_and_back(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %0 = glow_high.cast %v {to = i32} : tensor<2x3xi32>
  // CHECK-NEXT: %1 = glow_high.cast %0 {to = f32} : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.return %1
  %0 = glow_high.cast %v {to = i32} : tensor<2x3xi32>
  %1 = glow_high.cast %0 {to = f32} : tensor<2x3xf32>
  glow_high.return %1
}

// An operand that is broadcast anyway needs no expand.
// CHECK-LABEL: glow_high.func @expand_and_add(
glow_high.func @expand_and_add(%v: tensor<2x3xf32>, %w: tensor<3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %0 = glow_high.add %v, %w : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.expand %w {shape = [2, 3]} : tensor<2x3xf32>
  %1 = glow_high.add %v, %0 : tensor<2x3xf32>
  glow_high.return %1
}

// Where it makes the result longer, it stays.
// CHECK-LABEL: glow_high.func @expand_and_relu(
glow_high.func @expand_and_relu(%w: tensor<3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %0 = glow_high.expand %w {shape = [2, 3]} : tensor<2x3xf32>
  // CHECK-NEXT: %1 = glow_high.relu %0 : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.return %1
  %0 = glow_high.expand %w {shape = [2, 3]} : tensor<2x3xf32>
  %1 = glow_high.relu %0 : tensor<2x3xf32>
  glow_high.return %1
}

// Of two expands one is enough.
// CHECK-LABEL: glow_high.func @expand_twice_and_add(
glow_high.func @expand_twice_and_add(%w: tensor<3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %0 = glow_high.expand %w {shape = [2, 3]} : tensor<2x3xf32>
  // CHECK-NEXT: %1 = glow_high.add %w, %0 : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.return %1
  %0 = glow_high.expand %w {shape = [2, 3]} : tensor<2x3xf32>
  %1 = glow_high.add %0, %0 : tensor<2x3xf32>
  glow_high.return %1
}

// What is the same whatever the other operand is: integers alone, since a float may be NaN.
// CHECK-LABEL: glow_high.func @times_zero(
glow_high.func @times_zero(%n: tensor<2x3xi32>) -> tensor<2x3xi32> {
  // CHECK-NEXT: %[[ZERO:.*]] = glow_high.splat {value = 0 : i32} : tensor<2x3xi32>
  // CHECK-NEXT: glow_high.return %[[ZERO]]
  %s = glow_high.splat {value = 0 : i32} : tensor<i32>
  %0 = glow_high.mul %s, %n : tensor<2x3xi32>
  glow_high.return %0
}

// CHECK-LABEL: glow_high.func @or_of_true(
glow_high.func @or_of_true(%b: tensor<2x3xi1>) -> tensor<2x3xi1> {
  // CHECK-NEXT: %[[TRUE:.*]] = glow_high.splat {value = true} : tensor<2x3xi1>
  // CHECK-NEXT: glow_high.return %[[TRUE]]
  %s = glow_high.splat {value = true} : tensor<i1>
  %0 = glow_high.or %b, %s : tensor<2x3xi1>
  glow_high.return %0
}

// CHECK-LABEL: glow_high.func @sub_of_itself(
glow_high.func @sub_of_itself(%n: tensor<2x3xi32>) -> tensor<2x3xi32> {
  // CHECK-NEXT: glow_high.splat {value = 0 : i32} : tensor<2x3xi32>
  %0 = glow_high.sub %n, %n : tensor<2x3xi32>
  glow_high.return %0
}

// CHECK-LABEL: glow_high.func @sub_of_float_itself(
glow_high.func @sub_of_float_itself(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: glow_high.sub %v, %v : tensor<2x3xf32>
  %0 = glow_high.sub %v, %v : tensor<2x3xf32>
  glow_high.return %0
}

// The larger of two that are the same, and a choice between them.
// CHECK-LABEL: glow_high.func @same(
glow_high.func @same(%v: tensor<2x3xf32>, %b: tensor<2x3xi1>) -> tensor<2x3xf32> {
  // CHECK-NEXT: glow_high.return %v
  %0 = glow_high.max %v, %v : tensor<2x3xf32>
  %1 = glow_high.where %b, %0, %0 : tensor<2x3xf32>
  glow_high.return %1
}

// A choice that is known.
// CHECK-LABEL: glow_high.func @known_choice(
glow_high.func @known_choice(%v: tensor<2x3xf32>, %w: tensor<3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: glow_high.return %v
  %s = glow_high.splat {value = false} : tensor<i1>
  %0 = glow_high.where %s, %w, %v : tensor<2x3xf32>
  glow_high.return %0
}

// Adding the opposite is subtracting; a product with -1 is the opposite.
// CHECK-LABEL: glow_high.func @add_of_neg(
glow_high.func @add_of_neg(%v: tensor<2x3xf32>, %w: tensor<3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %[[DIFFERENCE:.*]] = glow_high.sub %w, %v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.return %[[DIFFERENCE]]
  %s = glow_high.splat {value = -1.0} : tensor<1xf32>
  %0 = glow_high.mul %v, %s : tensor<2x3xf32>
  %1 = glow_high.add %0, %w : tensor<2x3xf32>
  glow_high.return %1
}
