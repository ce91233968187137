// Exponentials over their sum become a softmax.

// RUN: glow-opt %s -p recognize-softmax --split-input-file | filecheck %s
// RUN: glow-opt %s -p recognize-softmax --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// With the maximum subtracted, without, and as a logarithm.

// CHECK-LABEL: glow_high.func @softmax(
// CHECK-NEXT:    %[[A:.*]] = glow_high.softmax %x {axis = 1} : tensor<2x4xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.softmax %x {axis = 0} : tensor<2x4xf32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.log_softmax %x {axis = 1} : tensor<2x4xf32>
// CHECK-NEXT:    %[[D:.*]] = glow_high.log_softmax %x {axis = 1} : tensor<2x4xf32>

// LOCATIONS: glow_high.softmax %x {{.*}} loc(fused[{{.*}}"peak", "difference", "power"{{.*}}"quotient"])
glow_high.func @softmax(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %1 = glow_high.reduce_max %x {axes = [-1]} : tensor<2x1xf32> loc("peak")
  %2 = glow_high.sub %x, %1 : tensor<2x4xf32> loc("difference")
  %3 = glow_high.exp %2 : tensor<2x4xf32> loc("power")
  %4 = glow_high.reduce_sum %3 {axes = [1]} : tensor<2x1xf32> loc("sum")
  %5 = glow_high.div %3, %4 : tensor<2x4xf32> loc("quotient")
  %6 = glow_high.exp %x : tensor<2x4xf32>
  %7 = glow_high.reduce_sum %6 {axes = [0]} : tensor<1x4xf32>
  %8 = glow_high.reciprocal %7 : tensor<1x4xf32>
  %9 = glow_high.mul %6, %8 : tensor<2x4xf32>
  %10 = glow_high.reduce_max %x {axes = [1]} : tensor<2x1xf32>
  %11 = glow_high.sub %x, %10 : tensor<2x4xf32>
  %12 = glow_high.exp %11 : tensor<2x4xf32>
  %13 = glow_high.reduce_sum %12 {axes = [1]} : tensor<2x1xf32>
  %14 = glow_high.log %13 : tensor<2x1xf32>
  %15 = glow_high.sub %11, %14 : tensor<2x4xf32>
  %16 = glow_high.reduce_log_sum_exp %x {axes = [1]} : tensor<2x1xf32>
  %17 = glow_high.sub %x, %16 : tensor<2x4xf32>
  glow_high.return %5, %9, %15, %17
}

// -----

// A maximum along another axis is no part of the softmax, but of what that is taken of.

// CHECK-LABEL: glow_high.func @other_axis(
// CHECK:         %[[SHIFTED:.*]] = glow_high.sub %x, %{{.*}} : tensor<2x2xf32>
// CHECK-NEXT:    glow_high.softmax %[[SHIFTED]] {axis = 0} : tensor<2x2xf32>
glow_high.func @other_axis(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %1 = glow_high.reduce_max %x {axes = [1]} : tensor<2x1xf32>
  %2 = glow_high.sub %x, %1 : tensor<2x2xf32>
  %3 = glow_high.exp %2 : tensor<2x2xf32>
  %4 = glow_high.reduce_sum %3 {axes = [0]} : tensor<1x2xf32>
  %5 = glow_high.div %3, %4 : tensor<2x2xf32>
  glow_high.return %5
}

// -----

// Not along two axes, of exponentials that something else reads, or of others in the sum than above it.

// CHECK-LABEL: glow_high.func @no(
// CHECK-NOT:     glow_high.softmax
glow_high.func @no(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %6 = glow_high.exp %x : tensor<2x2xf32>
  %7 = glow_high.reduce_sum %6 {axes = [0, 1]} : tensor<1x1xf32>
  %8 = glow_high.div %6, %7 : tensor<2x2xf32>
  %9 = glow_high.exp %8 : tensor<2x2xf32>
  %10 = glow_high.reduce_sum %9 {axes = [1]} : tensor<2x1xf32>
  %11 = glow_high.div %9, %10 : tensor<2x2xf32>
  %12 = glow_high.exp %11 : tensor<2x2xf32>
  %13 = glow_high.exp %x : tensor<2x2xf32>
  %14 = glow_high.reduce_sum %13 {axes = [1]} : tensor<2x1xf32>
  %15 = glow_high.div %12, %14 : tensor<2x2xf32>
  glow_high.return %9, %11, %15
}
