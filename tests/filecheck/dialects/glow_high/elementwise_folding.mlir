// Simplifications of elementwise operators.

// RUN: glow-opt %s -p canonicalize | filecheck %s

// Adding zero changes nothing.
// CHECK-LABEL: glow_high.func @add_of_zero(
glow_high.func @add_of_zero(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: glow_high.return %v
  %s = glow_high.splat {value = 0.0} : tensor<f32>
  %0 = glow_high.add %v, %s : tensor<2x3xf32>
  glow_high.return %0
}

// On either side.
// CHECK-LABEL: glow_high.func @zero_and_add(
glow_high.func @zero_and_add(%n: tensor<2x3xi32>) -> tensor<2x3xi32> {
  // CHECK-NEXT: glow_high.return %n
  %s = glow_high.splat {value = 0 : i32} : tensor<2x3xi32>
  %0 = glow_high.add %s, %n : tensor<2x3xi32>
  glow_high.return %0
}

// Adding one does.
// CHECK-LABEL: glow_high.func @add_of_one(
glow_high.func @add_of_one(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %s = glow_high.splat {value = 1.0} : tensor<f32>
  // CHECK-NEXT: %0 = glow_high.add %v, %s : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.return %0
  %s = glow_high.splat {value = 1.0} : tensor<f32>
  %0 = glow_high.add %v, %s : tensor<2x3xf32>
  glow_high.return %0
}

// Adding zero to what it broadcasts does.
// CHECK-LABEL: glow_high.func @add_of_wide_zero(
glow_high.func @add_of_wide_zero(%v: tensor<2x3xf32>) -> tensor<4x2x3xf32> {
  // CHECK-NEXT: %s = glow_high.splat {value = 0.0} : tensor<4x2x3xf32>
  // CHECK-NEXT: %0 = glow_high.add %v, %s : tensor<4x2x3xf32>
  // CHECK-NEXT: glow_high.return %0
  %s = glow_high.splat {value = 0.0} : tensor<4x2x3xf32>
  %0 = glow_high.add %v, %s : tensor<4x2x3xf32>
  glow_high.return %0
}

// Subtracting zero changes nothing.
// CHECK-LABEL: glow_high.func @sub_of_zero(
glow_high.func @sub_of_zero(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: glow_high.return %v
  %s = glow_high.splat {value = 0.0} : tensor<f32>
  %0 = glow_high.sub %v, %s : tensor<2x3xf32>
  glow_high.return %0
}

// Subtracting from zero does.
// CHECK-LABEL: glow_high.func @zero_and_sub(
glow_high.func @zero_and_sub(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %s = glow_high.splat {value = 0.0} : tensor<f32>
  // CHECK-NEXT: %0 = glow_high.sub %s, %v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.return %0
  %s = glow_high.splat {value = 0.0} : tensor<f32>
  %0 = glow_high.sub %s, %v : tensor<2x3xf32>
  glow_high.return %0
}

// A factor of one changes nothing.
// CHECK-LABEL: glow_high.func @mul_by_one(
glow_high.func @mul_by_one(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: glow_high.return %v
  %s = glow_high.splat {value = 1.0} : tensor<f32>
  %0 = glow_high.mul %s, %v : tensor<2x3xf32>
  glow_high.return %0
}

// A factor of zero is kept, for the sake of NaN.
// CHECK-LABEL: glow_high.func @mul_by_zero(
glow_high.func @mul_by_zero(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %s = glow_high.splat {value = 0.0} : tensor<f32>
  // CHECK-NEXT: %0 = glow_high.mul %s, %v : tensor<2x3xf32>
  // CHECK-NEXT: glow_high.return %0
  %s = glow_high.splat {value = 0.0} : tensor<f32>
  %0 = glow_high.mul %s, %v : tensor<2x3xf32>
  glow_high.return %0
}

// Dividing by one changes nothing.
// CHECK-LABEL: glow_high.func @div_by_one(
glow_high.func @div_by_one(%n: tensor<2x3xi32>) -> tensor<2x3xi32> {
  // CHECK-NEXT: glow_high.return %n
  %s = glow_high.splat {value = 1 : i32} : tensor<i32>
  %0 = glow_high.div %n, %s : tensor<2x3xi32>
  glow_high.return %0
}

// Dividing one does.
// CHECK-LABEL: glow_high.func @one_and_div(
glow_high.func @one_and_div(%n: tensor<2x3xi32>) -> tensor<2x3xi32> {
  // CHECK-NEXT: %s = glow_high.splat {value = 1 : i32} : tensor<i32>
  // CHECK-NEXT: %0 = glow_high.div %s, %n : tensor<2x3xi32>
  // CHECK-NEXT: glow_high.return %0
  %s = glow_high.splat {value = 1 : i32} : tensor<i32>
  %0 = glow_high.div %s, %n : tensor<2x3xi32>
  glow_high.return %0
}

// The first power changes nothing.
// CHECK-LABEL: glow_high.func @pow_of_one(
glow_high.func @pow_of_one(%v: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: glow_high.return %v
  %s = glow_high.splat {value = 1.0} : tensor<f32>
  %0 = glow_high.pow %v, %s : tensor<2x3xf32>
  glow_high.return %0
}

// `and` with true changes nothing.
// CHECK-LABEL: glow_high.func @and_of_true(
glow_high.func @and_of_true(%b: tensor<2x3xi1>) -> tensor<2x3xi1> {
  // CHECK-NEXT: glow_high.return %b
  %s = glow_high.splat {value = true} : tensor<i1>
  %0 = glow_high.and %b, %s : tensor<2x3xi1>
  glow_high.return %0
}

// `and` with false is false.
// CHECK-LABEL: glow_high.func @and_of_false(
glow_high.func @and_of_false(%b: tensor<2x3xi1>) -> tensor<2x3xi1> {
  // CHECK-NEXT: %[[FALSE:.*]] = glow_high.splat {value = false} : tensor<2x3xi1>
  // CHECK-NEXT: glow_high.return %[[FALSE]]
  %s = glow_high.splat {value = false} : tensor<i1>
  %0 = glow_high.and %b, %s : tensor<2x3xi1>
  glow_high.return %0
}

// `or` with false changes nothing.
// CHECK-LABEL: glow_high.func @or_of_false(
glow_high.func @or_of_false(%b: tensor<2x3xi1>) -> tensor<2x3xi1> {
  // CHECK-NEXT: glow_high.return %b
  %s = glow_high.splat {value = false} : tensor<i1>
  %0 = glow_high.or %s, %b : tensor<2x3xi1>
  glow_high.return %0
}

// `xor` with false changes nothing.
// CHECK-LABEL: glow_high.func @xor_of_false(
glow_high.func @xor_of_false(%b: tensor<2x3xi1>) -> tensor<2x3xi1> {
  // CHECK-NEXT: glow_high.return %b
  %s = glow_high.splat {value = false} : tensor<i1>
  %0 = glow_high.xor %b, %s : tensor<2x3xi1>
  glow_high.return %0
}

// Bits with zero change nothing.
// CHECK-LABEL: glow_high.func @bits_and_zero(
glow_high.func @bits_and_zero(%n: tensor<2x3xi32>) -> tensor<2x3xi32> {
  // CHECK-NEXT: glow_high.return %n
  %s = glow_high.splat {value = 0 : i32} : tensor<i32>
  %0 = glow_high.bitwise_or %n, %s : tensor<2x3xi32>
  %1 = glow_high.bitwise_xor %s, %0 : tensor<2x3xi32>
  %2 = glow_high.bit_shift %1, %s : tensor<2x3xi32>
  glow_high.return %2
}
