// What follows a convolution and is linear with constants a channel moves into its filter and bias.

// RUN: glow-opt %s -p fold-into-convolution --split-input-file | filecheck %s

// Batch normalization over the channels: one convolution remains, with a bias that it did not have.

// CHECK-LABEL: glow_high.func @batch_norm(
// CHECK:         %[[Y:.*]] = glow_high.conv %x, %{{.*}}, %{{.*}} {strides = [1, 1]} : tensor<1x2x2x2xf32>
// CHECK-NEXT:    glow_high.save %[[Y]], @y
glow_high.constant @filter : tensor<2x1x1x1xf32> {value = dense<1.0> : tensor<2x1x1x1xf32>}
glow_high.constant @two : tensor<2xf32> {value = dense<[2.0, 4.0]> : tensor<2xf32>}
glow_high.placeholder @x : tensor<1x2x2x1xf32> {input}
glow_high.placeholder @y : tensor<1x2x2x2xf32> {output}
glow_high.func @batch_norm(@x, @y) {
  %x = glow_high.get @x : tensor<1x2x2x1xf32>
  %filter = glow_high.get @filter : tensor<2x1x1x1xf32>
  %two = glow_high.get @two : tensor<2xf32>
  %1 = glow_high.conv %x, %filter {strides = [1, 1]} : tensor<1x2x2x2xf32>
  %2 = glow_high.batch_normalization %1, %two, %two, %two, %two : tensor<1x2x2x2xf32>
  glow_high.save %2, @y
}

// -----

// A chain of sums and products folds step by step, and carries the locations of all.

// CHECK-LABEL: glow_high.func @chain(
// CHECK-NOT:     glow_high.{{add|sub|mul|div}}
// CHECK:         glow_high.conv
// CHECK-NOT:     glow_high.{{add|sub|mul|div}}
// CHECK:         glow_high.save
glow_high.constant @filter : tensor<2x1x1x1xf32> {value = dense<1.0> : tensor<2x1x1x1xf32>}
glow_high.constant @bias : tensor<2xf32> {value = dense<1.0> : tensor<2xf32>}
glow_high.constant @channel : tensor<1x1x2xf32> {value = dense<[[[2.0, 4.0]]]> : tensor<1x1x2xf32>}
glow_high.placeholder @x : tensor<1x2x2x1xf32> {input}
glow_high.placeholder @y : tensor<1x2x2x2xf32> {output}
glow_high.func @chain(@x, @y) {
  %x = glow_high.get @x : tensor<1x2x2x1xf32>
  %filter = glow_high.get @filter : tensor<2x1x1x1xf32>
  %bias = glow_high.get @bias : tensor<2xf32>
  %channel = glow_high.get @channel : tensor<1x1x2xf32>
  %half = glow_high.splat {value = 0.5, shape = []} : tensor<f32>
  %1 = glow_high.conv %x, %filter, %bias : tensor<1x2x2x2xf32>
  %2 = glow_high.mul %1, %channel : tensor<1x2x2x2xf32>
  %3 = glow_high.add %half, %2 : tensor<1x2x2x2xf32>
  %4 = glow_high.sub %3, %channel : tensor<1x2x2x2xf32>
  %5 = glow_high.div %4, %half : tensor<1x2x2x2xf32>
  glow_high.save %5, @y
}

// -----

// Nothing folds where the operator is not linear in the result, or the constant varies within a channel …

// CHECK-LABEL: glow_high.func @not_linear(
// CHECK:         glow_high.conv
// CHECK:         glow_high.sub %half,
// CHECK:         glow_high.conv
// CHECK:         glow_high.div %half,
// CHECK:         glow_high.conv
// CHECK:         glow_high.add %{{.*}}, %rows
glow_high.constant @filter : tensor<2x1x1x1xf32> {value = dense<1.0> : tensor<2x1x1x1xf32>}
glow_high.constant @rows : tensor<1x2x1x1xf32> {value = dense<[[[[2.0]], [[4.0]]]]> : tensor<1x2x1x1xf32>}
glow_high.placeholder @x : tensor<1x2x2x1xf32> {input}
glow_high.placeholder @y : tensor<1x2x2x2xf32> {output}
glow_high.placeholder @z : tensor<1x2x2x2xf32> {output}
glow_high.placeholder @w : tensor<1x2x2x2xf32> {output}
glow_high.func @not_linear(@x, @y, @z, @w) {
  %x = glow_high.get @x : tensor<1x2x2x1xf32>
  %filter = glow_high.get @filter : tensor<2x1x1x1xf32>
  %rows = glow_high.get @rows : tensor<1x2x1x1xf32>
  %half = glow_high.splat {value = 0.5, shape = []} : tensor<f32>
  %1 = glow_high.conv %x, %filter : tensor<1x2x2x2xf32>
  %2 = glow_high.sub %half, %1 : tensor<1x2x2x2xf32>
  glow_high.save %2, @y
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
  %half = glow_high.splat {value = 0.5, shape = []} : tensor<f32>
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
glow_high.placeholder @x : tensor<1x2x2x1xf32> {input}
glow_high.placeholder @y : tensor<1x2x2x2xf32> {output}
glow_high.func @infinite(@x, @y) {
  %x = glow_high.get @x : tensor<1x2x2x1xf32>
  %filter = glow_high.get @filter : tensor<2x1x1x1xf32>
  %zero = glow_high.splat {value = 0.0, shape = []} : tensor<f32>
  %1 = glow_high.conv %x, %filter : tensor<1x2x2x2xf32>
  %2 = glow_high.div %1, %zero : tensor<1x2x2x2xf32>
  glow_high.save %2, @y
}
