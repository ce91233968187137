// Clips and ReLUs of tensors that lie in the range anyway are dropped.

// RUN: glow-opt %s -p remove-identity-clips --split-input-file | filecheck %s

// What is positive stays so through pools, joins, sums, products and the like.

// CHECK-LABEL: glow_high.func @positive(
// CHECK-NOT:     glow_high.relu
// CHECK:         %[[S:.*]] = glow_high.exp %x
// CHECK-NEXT:    %[[P:.*]] = glow_high.max_pool %[[S]]
// CHECK-NEXT:    %[[Q:.*]] = glow_high.mul %x, %x
// CHECK-NEXT:    %[[A:.*]] = glow_high.add %[[P]], %[[Q]]
// CHECK-NEXT:    %[[C:.*]] = glow_high.concat %[[A]], %[[S]] {axis = 3}
// CHECK-NEXT:    %[[B:.*]] = glow_high.pad %[[C]]
// CHECK-NEXT:    glow_high.return %[[B]]
glow_high.func @positive(%x: tensor<1x4x4x2xf32>) -> tensor<1x5x4x4xf32> {
  %1 = glow_high.exp %x : tensor<1x4x4x2xf32>
  %2 = glow_high.max_pool %1 {kernel_shape = [2, 2], pads = [1, 1, 0, 0]} : tensor<1x4x4x2xf32>
  %3 = glow_high.mul %x, %x : tensor<1x4x4x2xf32>
  %4 = glow_high.relu %3 : tensor<1x4x4x2xf32>
  %5 = glow_high.add %2, %4 : tensor<1x4x4x2xf32>
  %6 = glow_high.concat %5, %1 {axis = 3} : tensor<1x4x4x4xf32>
  %7 = glow_high.pad %6 {pads = [0, 1, 0, 0, 0, 0, 0, 0]} : tensor<1x5x4x4xf32>
  %8 = glow_high.relu %7 : tensor<1x5x4x4xf32>
  glow_high.return %8
}

// -----

// Ranges of constants, sigmoid and softmax against limits.

// CHECK-LABEL: glow_high.func @limits(
// CHECK:         %[[S:.*]] = glow_high.sigmoid %x
// CHECK-NEXT:    glow_high.save %[[S]], @y
// CHECK-NEXT:    %[[W:.*]] = glow_high.where %{{.*}}, %[[S]], %c
// CHECK-NEXT:    glow_high.save %[[W]], @z
glow_high.constant @c : tensor<3xf32> {value = dense<[0.25, -0.5, 1.0]> : tensor<3xf32>}
glow_high.placeholder @x : tensor<3xf32> {input}
glow_high.placeholder @y : tensor<3xf32> {output}
glow_high.placeholder @z : tensor<3xf32> {output}
glow_high.func @limits(@x, @y, @z) {
  %x = glow_high.get @x : tensor<3xf32>
  %c = glow_high.get @c : tensor<3xf32>
  %l = glow_high.splat {value = 0.0} : tensor<f32>
  %m = glow_high.splat {value = -0.5} : tensor<f32>
  %h = glow_high.splat {value = 1.0} : tensor<f32>
  %b = glow_high.less %x, %c : tensor<3xi1>
  %1 = glow_high.sigmoid %x : tensor<3xf32>
  %2 = glow_high.clip %1, %l, %h : tensor<3xf32>
  glow_high.save %2, @y
  %3 = glow_high.where %b, %2, %c : tensor<3xf32>
  %4 = glow_high.clip %3, %m, %h : tensor<3xf32>
  glow_high.save %4, @z
}

// -----

// What may leave the range counts: integers that wrap, negative numbers, a border below, a pool of padding alone.

// CHECK-LABEL: glow_high.func @stay(
// CHECK-COUNT-5: glow_high.relu
glow_high.placeholder @n : tensor<4xi8> {input}
glow_high.placeholder @x : tensor<1x4x2xf32> {input}
glow_high.placeholder @a : tensor<4xi8> {output}
glow_high.placeholder @b : tensor<4xi8> {output}
glow_high.placeholder @c : tensor<1x4x2xf32> {output}
glow_high.placeholder @d : tensor<1x6x2xf32> {output}
glow_high.placeholder @e : tensor<1x8x2xf32> {output}
glow_high.func @stay(@n, @x, @a, @b, @c, @d, @e) {
  %n = glow_high.get @n : tensor<4xi8>
  %x = glow_high.get @x : tensor<1x4x2xf32>
  %1 = glow_high.mul %n, %n : tensor<4xi8>
  %2 = glow_high.relu %1 : tensor<4xi8>
  glow_high.save %2, @a
  %3 = glow_high.abs %n : tensor<4xi8>
  %4 = glow_high.relu %3 : tensor<4xi8>
  glow_high.save %4, @b
  %5 = glow_high.tanh %x : tensor<1x4x2xf32>
  %6 = glow_high.relu %5 : tensor<1x4x2xf32>
  glow_high.save %6, @c
  %m = glow_high.splat {value = -1.0} : tensor<f32>
  %7 = glow_high.pad %6, %m {pads = [0, 1, 0, 0, 1, 0]} : tensor<1x6x2xf32>
  %8 = glow_high.relu %7 : tensor<1x6x2xf32>
  glow_high.save %8, @d
  %9 = glow_high.max_pool %6 {kernel_shape = [1], pads = [2, 2]} : tensor<1x8x2xf32>
  %10 = glow_high.relu %9 : tensor<1x8x2xf32>
  glow_high.save %10, @e
}

// -----

// Integers that no float tells apart are different.

// CHECK-LABEL: glow_high.func @large(
// CHECK:         glow_high.max
glow_high.constant @c : tensor<2xi64> {value = dense<[-9007199254740993, 5]> : tensor<2xi64>}
glow_high.func @large(%x: tensor<1xi64>) -> tensor<1xi64> {
  %c = glow_high.get @c : tensor<2xi64>
  %low = glow_high.splat {value = -9007199254740992} : tensor<i64>
  %1 = glow_high.gather %c, %x : tensor<1xi64>
  %2 = glow_high.max %1, %low : tensor<1xi64>
  glow_high.return %2
}
