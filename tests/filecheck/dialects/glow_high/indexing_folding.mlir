// Simplifications of operators that select elements by indices.

// RUN: glow-opt %s -p canonicalize | filecheck %s

// A gather with one known index is a slice.
// CHECK-LABEL: glow_high.func @gather_of_one(
glow_high.func @gather_of_one(%x: tensor<2x3x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: %0 = glow_high.slice %x {starts = [0, 1, 0], ends = [2, 2, 4]} : tensor<2x1x4xf32>
  // CHECK-NEXT: %1 = glow_high.reshape %0 {shape = [2, 4]} : tensor<2x4xf32>
  // CHECK-NEXT: glow_high.return %1
  %i = glow_high.splat {value = 1} : tensor<i64>
  %0 = glow_high.gather %x, %i {axis = 1} : tensor<2x4xf32>
  glow_high.return %0
}

// An index may count from the back, and have axes.
// CHECK-LABEL: glow_high.func @gather_of_last(
glow_high.func @gather_of_last(%x: tensor<2x3x4xf32>) -> tensor<2x3x1x1xf32> {
  // CHECK-NEXT: %0 = glow_high.slice %x {starts = [0, 0, 3], ends = [2, 3, 4]} : tensor<2x3x1xf32>
  // CHECK-NEXT: %1 = glow_high.reshape %0 {shape = [2, 3, 1, 1]} : tensor<2x3x1x1xf32>
  // CHECK-NEXT: glow_high.return %1
  %i = glow_high.splat {value = -1} : tensor<1x1xi64>
  %0 = glow_high.gather %x, %i {axis = -1} : tensor<2x3x1x1xf32>
  glow_high.return %0
}

// An index out of range stays, to fail.
// CHECK-LABEL: glow_high.func @gather_of_none(
glow_high.func @gather_of_none(%x: tensor<2x3x4xf32>) -> tensor<3x4xf32> {
  // CHECK-NEXT: %i = glow_high.splat {value = 9} : tensor<i64>
  // CHECK-NEXT: %0 = glow_high.gather %x, %i : tensor<3x4xf32>
  // CHECK-NEXT: glow_high.return %0
  %i = glow_high.splat {value = 9} : tensor<i64>
  %0 = glow_high.gather %x, %i : tensor<3x4xf32>
  glow_high.return %0
}

// A gather with several indices stays.
// CHECK-LABEL: glow_high.func @gather_stays(
glow_high.func @gather_stays(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: %i = glow_high.splat {value = 1} : tensor<2xi64>
  // CHECK-NEXT: %0 = glow_high.gather %x, %i : tensor<2x3x4xf32>
  // CHECK-NEXT: glow_high.return %0
  %i = glow_high.splat {value = 1} : tensor<2xi64>
  %0 = glow_high.gather %x, %i : tensor<2x3x4xf32>
  glow_high.return %0
}

// A gather with an unknown index stays.
// CHECK-LABEL: glow_high.func @gather_of_unknown(
glow_high.func @gather_of_unknown(%x: tensor<2x3x4xf32>, %j: tensor<i64>) -> tensor<3x4xf32> {
  // CHECK-NEXT: %0 = glow_high.gather %x, %j : tensor<3x4xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.gather %x, %j : tensor<3x4xf32>
  glow_high.return %0
}
