// Convolutions of small images read less of the filter, or are matrix products.

// RUN: glow-opt %s -p simplify-convolutions --split-input-file | filecheck %s
// RUN: glow-opt %s -p simplify-convolutions,simplify-convolutions --split-input-file | filecheck %s

// Of a padded filter over a single pixel the centre is left, and that is a product; of two pixels in a row, three taps.

// CHECK-LABEL: glow_high.func @padding(
// CHECK:         %[[ROW:.*]] = glow_high.reshape %x {shape = [1, 1]}
// CHECK-NEXT:    %[[WEIGHT:.*]] = glow_high.splat {value = 3.0}
// CHECK-NEXT:    %[[PRODUCT:.*]] = glow_high.matmul %[[ROW]], %[[WEIGHT]], %bias : tensor<1x1xf32>
// CHECK-NEXT:    %[[RESULT:.*]] = glow_high.reshape %[[PRODUCT]] {shape = [1, 1, 1]}
// CHECK-NEXT:    glow_high.save %[[RESULT]], @y
// CHECK:         %[[TAPS:.*]] = glow_high.get @{{.*}} : tensor<1x3x1xf32>
// CHECK-NEXT:    glow_high.conv %z, %[[TAPS]] {pads = [1, 1], strides = [1], dilations = [1]} : tensor<1x2x1xf32>
glow_high.constant @filter : tensor<1x5x1xf32> {value = dense<[[[1.0], [2.0], [3.0], [4.0], [5.0]]]> : tensor<1x5x1xf32>}
glow_high.constant @bias : tensor<1xf32> {value = dense<1.0> : tensor<1xf32>}
glow_high.placeholder @x : tensor<1x1x1xf32> {input}
glow_high.placeholder @z : tensor<1x2x1xf32> {input}
glow_high.placeholder @y : tensor<1x1x1xf32> {output}
glow_high.placeholder @w : tensor<1x2x1xf32> {output}
glow_high.func @padding(@x, @z, @y, @w) {
  %x = glow_high.get @x : tensor<1x1x1xf32>
  %z = glow_high.get @z : tensor<1x2x1xf32>
  %filter = glow_high.get @filter : tensor<1x5x1xf32>
  %bias = glow_high.get @bias : tensor<1xf32>
  %1 = glow_high.conv %x, %filter, %bias {pads = [2, 2]} : tensor<1x1x1xf32>
  glow_high.save %1, @y
  %2 = glow_high.conv %z, %filter {strides = [1], pads = [2, 2], dilations = [1]} : tensor<1x2x1xf32>
  glow_high.save %2, @w
}

// -----

// A window that is the whole image.

// CHECK-LABEL: glow_high.func @whole(
// CHECK:         %[[ROWS:.*]] = glow_high.reshape %x {shape = [5, 4]}
// CHECK:         %[[PRODUCT:.*]] = glow_high.matmul %[[ROWS]], %{{.*}} : tensor<5x2xf32>
// CHECK-NEXT:    glow_high.reshape %[[PRODUCT]] {shape = [5, 1, 1, 2]}
glow_high.constant @filter : tensor<2x2x2x1xf32> {value = dense<[[[[1.0], [2.0]], [[3.0], [4.0]]], [[[5.0], [6.0]], [[7.0], [8.0]]]]> : tensor<2x2x2x1xf32>}
glow_high.func @whole(%x: tensor<5x2x2x1xf32>) -> tensor<5x1x1x2xf32> {
  %filter = glow_high.get @filter : tensor<2x2x2x1xf32>
  %1 = glow_high.conv %x, %filter : tensor<5x1x1x2xf32>
  glow_high.return %1
}

// -----

// Groups are no product, a variable filter is not cut, and images that all taps see are left alone.

// CHECK-LABEL: glow_high.func @stay(
// CHECK:         glow_high.conv %x, %filter {group = 2}
// CHECK:         glow_high.conv %x, %v {pads = [1, 1]}
// CHECK:         glow_high.conv %z, %filter {pads = [1, 1], group = 2}
glow_high.constant @filter : tensor<2x3x1xf32> {value = dense<[[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]]> : tensor<2x3x1xf32>}
glow_high.placeholder @x : tensor<1x3x2xf32> {input}
glow_high.placeholder @v : tensor<2x5x2xf32> {input}
glow_high.placeholder @z : tensor<1x2x2xf32> {input}
glow_high.placeholder @a : tensor<1x1x2xf32> {output}
glow_high.placeholder @b : tensor<1x1x2xf32> {output}
glow_high.placeholder @c : tensor<1x2x2xf32> {output}
glow_high.func @stay(@x, @v, @z, @a, @b, @c) {
  %x = glow_high.get @x : tensor<1x3x2xf32>
  %v = glow_high.get @v : tensor<2x5x2xf32>
  %z = glow_high.get @z : tensor<1x2x2xf32>
  %filter = glow_high.get @filter : tensor<2x3x1xf32>
  %1 = glow_high.conv %x, %filter {group = 2} : tensor<1x1x2xf32>
  glow_high.save %1, @a
  %2 = glow_high.conv %x, %v {pads = [1, 1]} : tensor<1x1x2xf32>
  glow_high.save %2, @b
  %3 = glow_high.conv %z, %filter {pads = [1, 1], group = 2} : tensor<1x2x2xf32>
  glow_high.save %3, @c
}

// -----

// A convolution without filters is a product without columns.

// CHECK-LABEL: glow_high.func @nothing(
// CHECK:         glow_high.matmul %{{.*}}, %{{.*}} : tensor<1x0xf32>
glow_high.constant @filter : tensor<0x2x2x3xf32> {value = dense<> : tensor<0x2x2x3xf32>}
glow_high.func @nothing(%x: tensor<1x2x2x3xf32>) -> tensor<1x1x1x0xf32> {
  %filter = glow_high.get @filter : tensor<0x2x2x3xf32>
  %1 = glow_high.conv %x, %filter : tensor<1x1x1x0xf32>
  glow_high.return %1
}
