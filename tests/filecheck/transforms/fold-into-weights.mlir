// What follows or precedes a convolution or matrix product and is linear with constants a channel moves into its
// weights and bias.

// RUN: glow-opt %s -p fold-into-weights --split-input-file | filecheck %s
// RUN: glow-opt %s -p fold-into-weights --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// Batch normalization over the channels: one convolution remains, with a bias that it did not have.

// CHECK-LABEL: glow_high.func @batch_norm(
// CHECK:         %[[Y:.*]] = glow_high.conv %x, %{{.*}}, %{{.*}} {strides = [1, 1]} : tensor<1x2x2x2xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]
glow_high.constant @filter : tensor<2x1x1x1xf32> {value = dense<1.0> : tensor<2x1x1x1xf32>}
glow_high.constant @two : tensor<2xf32> {value = dense<[2.0, 4.0]> : tensor<2xf32>}
glow_high.func @batch_norm(%x: tensor<1x2x2x1xf32>) -> tensor<1x2x2x2xf32> {
  %filter = glow_high.get @filter : tensor<2x1x1x1xf32>
  %two = glow_high.get @two : tensor<2xf32>
  %1 = glow_high.conv %x, %filter {strides = [1, 1]} : tensor<1x2x2x2xf32>
  %2 = glow_high.batch_normalization %1, %two, %two, %two, %two : tensor<1x2x2x2xf32>
  glow_high.return %2
}

// -----

// A chain of sums and products folds at once, and the result carries the locations of all.

// CHECK-LABEL: glow_high.func @chain(
// CHECK:         %[[Y:.*]] = glow_high.conv %x, %{{.*}}, %{{.*}} : tensor<1x2x2x2xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]

// LOCATIONS: glow_high.conv {{.*}} loc(fused["convolution", {{.*}}, "quotient", {{.*}}])
glow_high.constant @filter : tensor<2x1x1x1xf32> {value = dense<1.0> : tensor<2x1x1x1xf32>}
glow_high.constant @bias : tensor<2xf32> {value = dense<1.0> : tensor<2xf32>}
glow_high.constant @channel : tensor<1x1x2xf32> {value = dense<[[[2.0, 4.0]]]> : tensor<1x1x2xf32>}
glow_high.func @chain(%x: tensor<1x2x2x1xf32>) -> tensor<1x2x2x2xf32> {
  %filter = glow_high.get @filter : tensor<2x1x1x1xf32>
  %bias = glow_high.get @bias : tensor<2xf32>
  %channel = glow_high.get @channel : tensor<1x1x2xf32>
  %half = glow_high.splat {value = 0.5} : tensor<f32>
  %1 = glow_high.conv %x, %filter, %bias : tensor<1x2x2x2xf32> loc("convolution")
  %2 = glow_high.mul %1, %channel : tensor<1x2x2x2xf32>
  %3 = glow_high.add %half, %2 : tensor<1x2x2x2xf32>
  %4 = glow_high.sub %3, %channel : tensor<1x2x2x2xf32>
  %5 = glow_high.div %4, %half : tensor<1x2x2x2xf32> loc("quotient")
  %6 = glow_high.sub %channel, %5 : tensor<1x2x2x2xf32>
  %7 = glow_high.neg %6 : tensor<1x2x2x2xf32>
  glow_high.return %7
}

// -----

// Nothing folds where the operator is not linear in the result, or the constant varies within a channel …

// CHECK-LABEL: glow_high.func @not_linear(
// CHECK:         glow_high.conv
// CHECK:         glow_high.div %half,
// CHECK:         glow_high.conv
// CHECK:         glow_high.add %{{.*}}, %rows
glow_high.constant @filter : tensor<2x1x1x1xf32> {value = dense<1.0> : tensor<2x1x1x1xf32>}
glow_high.constant @rows : tensor<1x2x1x1xf32> {value = dense<[[[[2.0]], [[4.0]]]]> : tensor<1x2x1x1xf32>}
glow_high.placeholder @x : tensor<1x2x2x1xf32> {input}
glow_high.placeholder @z : tensor<1x2x2x2xf32> {output}
glow_high.placeholder @w : tensor<1x2x2x2xf32> {output}
glow_high.func @not_linear(@x, @z, @w) {
  %x = glow_high.get @x : tensor<1x2x2x1xf32>
  %filter = glow_high.get @filter : tensor<2x1x1x1xf32>
  %rows = glow_high.get @rows : tensor<1x2x1x1xf32>
  %half = glow_high.splat {value = 0.5} : tensor<f32>
  %3 = glow_high.conv %x, %filter : tensor<1x2x2x2xf32>
  %4 = glow_high.div %half, %3 : tensor<1x2x2x2xf32>
  glow_high.save %4, @z
  %5 = glow_high.conv %x, %filter : tensor<1x2x2x2xf32>
  %6 = glow_high.add %5, %rows : tensor<1x2x2x2xf32>
  glow_high.save %6, @w
}

// -----

// … where the convolution has another user, or its filter is no constant, or its channels come first …

// CHECK-LABEL: glow_high.func @not_alone(
// CHECK:         glow_high.mul
// CHECK:         glow_high.mul
// CHECK:         glow_high.mul
glow_high.constant @filter : tensor<2x1x1x1xf32> {value = dense<1.0> : tensor<2x1x1x1xf32>}
glow_high.placeholder @x : tensor<1x2x2x1xf32> {input}
glow_high.placeholder @free : tensor<2x1x1x1xf32> {input}
glow_high.placeholder @image : tensor<1x1x2x2xf32> {input}
glow_high.placeholder @y : tensor<1x2x2x2xf32> {output}
glow_high.placeholder @z : tensor<1x2x2x2xf32> {output}
glow_high.placeholder @v : tensor<1x2x2x2xf32> {output}
glow_high.placeholder @w : tensor<1x2x2x2xf32> {output}
glow_high.func @not_alone(@x, @free, @image, @y, @z, @v, @w) {
  %x = glow_high.get @x : tensor<1x2x2x1xf32>
  %free = glow_high.get @free : tensor<2x1x1x1xf32>
  %image = glow_high.get @image : tensor<1x1x2x2xf32>
  %filter = glow_high.get @filter : tensor<2x1x1x1xf32>
  %half = glow_high.splat {value = 0.5} : tensor<f32>
  %1 = glow_high.conv %x, %filter : tensor<1x2x2x2xf32>
  %2 = glow_high.mul %1, %half : tensor<1x2x2x2xf32>
  glow_high.save %1, @y
  glow_high.save %2, @z
  %3 = glow_high.conv %x, %free : tensor<1x2x2x2xf32>
  %4 = glow_high.mul %3, %half : tensor<1x2x2x2xf32>
  glow_high.save %4, @v
  %5 = glow_high.conv %image, %filter {layout = "channels_first"} : tensor<1x2x2x2xf32>
  %6 = glow_high.mul %5, %half : tensor<1x2x2x2xf32>
  glow_high.save %6, @w
}

// -----

// … or where infinity would meet a zero of the filter.

// CHECK-LABEL: glow_high.func @infinite(
// CHECK:         glow_high.div
glow_high.constant @filter : tensor<2x1x1x1xf32> {value = dense<0.0> : tensor<2x1x1x1xf32>}
glow_high.func @infinite(%x: tensor<1x2x2x1xf32>) -> tensor<1x2x2x2xf32> {
  %filter = glow_high.get @filter : tensor<2x1x1x1xf32>
  %zero = glow_high.splat {value = 0.0} : tensor<f32>
  %1 = glow_high.conv %x, %filter : tensor<1x2x2x2xf32>
  %2 = glow_high.div %1, %zero : tensor<1x2x2x2xf32>
  glow_high.return %2
}

// -----

// Before a padded convolution only a factor folds, since the padding is not added to; groups keep their channels.

// CHECK-LABEL: glow_high.func @before(
// CHECK:         %[[SUM:.*]] = glow_high.add %x, %two
// CHECK-NEXT:    %[[FILTER:.*]] = glow_high.get @{{.*}} : tensor<2x2x1x1xf32>
// CHECK-NEXT:    %[[PADDED:.*]] = glow_high.conv %[[SUM]], %[[FILTER]] {pads = [1, 1, 1, 1], group = 2}
// CHECK-NEXT:    glow_high.save %[[PADDED]], @y
// CHECK:         %[[EVEN:.*]] = glow_high.conv %x, %filter, %{{.*}} {group = 2} : tensor<1x2x3x2xf32>
// CHECK-NEXT:    glow_high.save %[[EVEN]], @z
glow_high.constant @filter : tensor<2x2x1x1xf32> {value = dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>}
glow_high.constant @two : tensor<2xf32> {value = dense<[2.0, 4.0]> : tensor<2xf32>}
glow_high.placeholder @x : tensor<1x3x3x2xf32> {input}
glow_high.placeholder @y : tensor<1x4x5x2xf32> {output}
glow_high.placeholder @z : tensor<1x2x3x2xf32> {output}
glow_high.func @before(@x, @y, @z) {
  %x = glow_high.get @x : tensor<1x3x3x2xf32>
  %filter = glow_high.get @filter : tensor<2x2x1x1xf32>
  %two = glow_high.get @two : tensor<2xf32>
  %1 = glow_high.add %x, %two : tensor<1x3x3x2xf32>
  %2 = glow_high.mul %1, %two : tensor<1x3x3x2xf32>
  %3 = glow_high.conv %2, %filter {pads = [1, 1, 1, 1], group = 2} : tensor<1x4x5x2xf32>
  glow_high.save %3, @y
  %4 = glow_high.sub %x, %two : tensor<1x3x3x2xf32>
  %5 = glow_high.conv %4, %filter {group = 2} : tensor<1x2x3x2xf32>
  glow_high.save %5, @z
}

// -----

// Transposed convolutions take what follows.

// CHECK-LABEL: glow_high.func @transposed(
// CHECK:         %[[Y:.*]] = glow_high.conv_transpose %x, %{{.*}}, %{{.*}} {strides = [2], group = 2} : tensor<1x6x2xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]
glow_high.constant @filter : tensor<2x2x1xf32> {value = dense<[[[1.0], [2.0]], [[3.0], [4.0]]]> : tensor<2x2x1xf32>}
glow_high.constant @two : tensor<2xf32> {value = dense<[2.0, 4.0]> : tensor<2xf32>}
glow_high.func @transposed(%x: tensor<1x3x2xf32>) -> tensor<1x6x2xf32> {
  %filter = glow_high.get @filter : tensor<2x2x1xf32>
  %two = glow_high.get @two : tensor<2xf32>
  %1 = glow_high.conv_transpose %x, %filter {strides = [2], group = 2} : tensor<1x6x2xf32>
  %2 = glow_high.batch_normalization %1, %two, %two, %two, %two : tensor<1x6x2xf32>
  glow_high.return %2
}
