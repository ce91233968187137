// A convolution of every second pixel is one with dilations.

// RUN: glow-opt %s -p fold-dilated-convolutions --split-input-file | filecheck %s
// RUN: glow-opt %s -p fold-dilated-convolutions --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// SpaceToBatchND and BatchToSpaceND, as tf2onnx writes them by reshapes: 2 × 3 images of an image each. Dilations and
// pads of the convolution grow by the same factors.

// CHECK-LABEL: glow_high.func @batch(
// CHECK-NOT:     glow_high.reshape
// CHECK:         %[[Y:.*]] = glow_high.conv %x, %f, %bias {strides = [1, 1], pads = [2, 0, 0, 3], dilations = [4, 3]} : tensor<5x2x9x2xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]

// LOCATIONS: glow_high.conv {{.*}} loc(fused["deal", "conv", "gather"])
glow_high.func @batch(%x: tensor<5x4x9x3xf32>, %f: tensor<2x2x2x3xf32>, %bias: tensor<2xf32>) -> tensor<5x2x9x2xf32> {
  %1 = glow_high.reshape %x {shape = [5, 2, 2, 3, 3, 3]} : tensor<5x2x2x3x3x3xf32> loc("deal")
  %2 = glow_high.transpose %1 {permutation = [2, 4, 0, 1, 3, 5]} : tensor<2x3x5x2x3x3xf32> loc("deal")
  %3 = glow_high.reshape %2 {shape = [30, 2, 3, 3]} : tensor<30x2x3x3xf32> loc("deal")
  %4 = glow_high.conv %3, %f, %bias {pads = [1, 0, 0, 1], dilations = [2, 1]} : tensor<30x1x3x2xf32> loc("conv")
  %5 = glow_high.reshape %4 {shape = [2, 3, 5, 1, 3, 2]} : tensor<2x3x5x1x3x2xf32> loc("gather")
  %6 = glow_high.transpose %5 {permutation = [2, 3, 0, 4, 1, 5]} : tensor<5x1x2x3x3x2xf32> loc("gather")
  %7 = glow_high.reshape %6 {shape = [5, 2, 9, 2]} : tensor<5x2x9x2xf32> loc("gather")
  glow_high.return %7
}

// -----

// By SpaceToDepth and DepthToSpace, of an image with channels first and the batch behind them. Transposes stay that put
// channels last.

// CHECK-LABEL: glow_high.func @depth(
// CHECK:         %[[X:.*]] = glow_high.transpose %x {permutation = [1, 2, 3, 0]} : tensor<2x4x6x3xf32>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.conv %[[X]], %f {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [2, 2], group = 3} : tensor<2x2x4x3xf32>
// CHECK-NEXT:    %[[R:.*]] = glow_high.transpose %[[Y]] {permutation = [3, 0, 1, 2]} : tensor<3x2x2x4xf32>
// CHECK-NEXT:    glow_high.return %[[R]]
glow_high.func @depth(%x: tensor<3x2x4x6xf32>, %f: tensor<3x2x2x1xf32>) -> tensor<3x2x2x4xf32> {
  %1 = glow_high.reshape %x {shape = [3, 2, 2, 2, 3, 2]} : tensor<3x2x2x2x3x2xf32>
  %2 = glow_high.transpose %1 {permutation = [0, 3, 5, 1, 2, 4]} : tensor<3x2x2x2x2x3xf32>
  %3 = glow_high.reshape %2 {shape = [3, 8, 2, 3]} : tensor<3x8x2x3xf32>
  %4 = glow_high.transpose %3 {permutation = [1, 2, 3, 0]} : tensor<8x2x3x3xf32>
  %5 = glow_high.conv %4, %f {group = 3} : tensor<8x1x2x3xf32>
  %6 = glow_high.transpose %5 {permutation = [3, 0, 1, 2]} : tensor<3x8x1x2xf32>
  %7 = glow_high.reshape %6 {shape = [3, 2, 2, 2, 1, 2]} : tensor<3x2x2x2x1x2xf32>
  %8 = glow_high.transpose %7 {permutation = [0, 3, 4, 1, 5, 2]} : tensor<3x2x1x2x2x2xf32>
  %9 = glow_high.reshape %8 {shape = [3, 2, 2, 4]} : tensor<3x2x2x4xf32>
  glow_high.return %9
}

// -----

// A sequence, whose convolution has a height of one, and a stride along it.

// CHECK-LABEL: glow_high.func @sequence(
// CHECK:         %[[X:.*]] = glow_high.reshape %x {shape = [1, 1, 12, 2]}
// CHECK-NEXT:    %[[Y:.*]] = glow_high.conv %[[X]], %f {strides = [2, 1], pads = [0, 0, 0, 0], dilations = [1, 4]} : tensor<1x1x8x5xf32>
// CHECK-NEXT:    %[[R:.*]] = glow_high.reshape %[[Y]] {shape = [1, 8, 5]}
// CHECK-NEXT:    glow_high.return %[[R]]
glow_high.func @sequence(%x: tensor<1x12x2xf32>, %f: tensor<5x1x2x2xf32>) -> tensor<1x8x5xf32> {
  %1 = glow_high.reshape %x {shape = [3, 4, 2]} : tensor<3x4x2xf32>
  %2 = glow_high.transpose %1 {permutation = [1, 0, 2]} : tensor<4x3x2xf32>
  %3 = glow_high.reshape %2 {shape = [4, 1, 3, 2]} : tensor<4x1x3x2xf32>
  %4 = glow_high.conv %3, %f {strides = [2, 1]} : tensor<4x1x2x5xf32>
  %5 = glow_high.reshape %4 {shape = [4, 2, 5]} : tensor<4x2x5xf32>
  %6 = glow_high.transpose %5 {permutation = [1, 0, 2]} : tensor<2x4x5xf32>
  %7 = glow_high.reshape %6 {shape = [1, 8, 5]} : tensor<1x8x5xf32>
  glow_high.return %7
}

// -----

// What is not gathered as it was dealt stays: in another order, with a stride, in blocks of neighbours, or where
// something else reads the parts.

// CHECK-LABEL: glow_high.func @stay(
// CHECK:         glow_high.conv %{{.*}}, %f : tensor<4x2x3xf32>
// CHECK:         glow_high.conv %{{.*}}, %f {strides = [2]} : tensor<4x1x3xf32>
// CHECK:         glow_high.conv %{{.*}}, %f : tensor<4x2x3xf32>
// CHECK:         glow_high.conv %{{.*}}, %f : tensor<4x2x3xf32>
glow_high.placeholder @x : tensor<2x6x1xf32> {input}
glow_high.placeholder @f : tensor<3x2x1xf32> {input}
glow_high.placeholder @a : tensor<2x4x3xf32> {output}
glow_high.placeholder @b : tensor<2x2x3xf32> {output}
glow_high.placeholder @c : tensor<2x4x3xf32> {output}
glow_high.placeholder @d : tensor<2x4x3xf32> {output}
glow_high.placeholder @e : tensor<4x2x3xf32> {output}
glow_high.func @stay(@x, @f, @a, @b, @c, @d, @e) {
  %x = glow_high.get @x : tensor<2x6x1xf32>
  %f = glow_high.get @f : tensor<3x2x1xf32>
  %1 = glow_high.reshape %x {shape = [2, 3, 2, 1]} : tensor<2x3x2x1xf32>
  %2 = glow_high.transpose %1 {permutation = [2, 0, 1, 3]} : tensor<2x2x3x1xf32>
  %3 = glow_high.reshape %2 {shape = [4, 3, 1]} : tensor<4x3x1xf32>
  %4 = glow_high.conv %3, %f : tensor<4x2x3xf32>
  %5 = glow_high.reshape %4 {shape = [2, 2, 2, 3]} : tensor<2x2x2x3xf32>
  %6 = glow_high.transpose %5 {permutation = [0, 2, 1, 3]} : tensor<2x2x2x3xf32>
  %7 = glow_high.reshape %6 {shape = [2, 4, 3]} : tensor<2x4x3xf32>
  glow_high.save %7, @a
  %8 = glow_high.conv %3, %f {strides = [2]} : tensor<4x1x3xf32>
  %9 = glow_high.reshape %8 {shape = [2, 2, 1, 3]} : tensor<2x2x1x3xf32>
  %10 = glow_high.transpose %9 {permutation = [1, 2, 0, 3]} : tensor<2x1x2x3xf32>
  %11 = glow_high.reshape %10 {shape = [2, 2, 3]} : tensor<2x2x3xf32>
  glow_high.save %11, @b
  %12 = glow_high.reshape %x {shape = [4, 3, 1]} : tensor<4x3x1xf32>
  %13 = glow_high.conv %12, %f : tensor<4x2x3xf32>
  %14 = glow_high.reshape %13 {shape = [2, 4, 3]} : tensor<2x4x3xf32>
  glow_high.save %14, @c
  %15 = glow_high.conv %3, %f : tensor<4x2x3xf32>
  %16 = glow_high.reshape %15 {shape = [2, 2, 2, 3]} : tensor<2x2x2x3xf32>
  %17 = glow_high.transpose %16 {permutation = [1, 2, 0, 3]} : tensor<2x2x2x3xf32>
  %18 = glow_high.reshape %17 {shape = [2, 4, 3]} : tensor<2x4x3xf32>
  glow_high.save %18, @d
  glow_high.save %15, @e
}
