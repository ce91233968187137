// Normalization over trailing axes that is spelled out becomes an operator.

// RUN: glow-opt %s -p recognize-normalization --split-input-file | filecheck %s
// RUN: glow-opt %s -p recognize-normalization --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// As PyTorch writes it, with scale and bias behind.

// CHECK-LABEL: glow_high.func @layer(
// CHECK:         %[[Y:.*]] = glow_high.layer_normalization %x, %scale, %bias {epsilon = 0.5} : tensor<2x4xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]

// LOCATIONS: glow_high.layer_normalization %x, %scale, %bias {{.*}} loc(fused[{{.*}}"mean", "centre", "root", "quotient", "product", "sum"])
glow_high.constant @scale : tensor<4xf32> {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}
glow_high.func @layer(%x: tensor<2x4xf32>, %bias: tensor<4xf32>) -> tensor<2x4xf32> {
  %scale = glow_high.get @scale : tensor<4xf32>
  %epsilon = glow_high.splat {value = 0.5} : tensor<f32>
  %two = glow_high.splat {value = 2.0} : tensor<f32>
  %1 = glow_high.reduce_mean %x {axes = [-1]} : tensor<2x1xf32> loc("mean")
  %2 = glow_high.sub %x, %1 : tensor<2x4xf32> loc("centre")
  %3 = glow_high.pow %2, %two : tensor<2x4xf32> loc("square")
  %4 = glow_high.reduce_mean %3 {axes = [-1]} : tensor<2x1xf32> loc("variance")
  %5 = glow_high.add %4, %epsilon : tensor<2x1xf32> loc("epsilon")
  %6 = glow_high.sqrt %5 : tensor<2x1xf32> loc("root")
  %7 = glow_high.div %2, %6 : tensor<2x4xf32> loc("quotient")
  %8 = glow_high.mul %7, %scale : tensor<2x4xf32> loc("product")
  %9 = glow_high.add %8, %bias : tensor<2x4xf32> loc("sum")
  glow_high.return %9
}

// -----

// As TensorFlow writes it: one factor for the input and for the mean.

// CHECK-LABEL: glow_high.func @factor(
// CHECK:         %[[Y:.*]] = glow_high.layer_normalization %x, %scale, %scale {epsilon = 0.5} : tensor<2x4xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]
glow_high.constant @scale : tensor<4xf32> {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}
glow_high.func @factor(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %scale = glow_high.get @scale : tensor<4xf32>
  %epsilon = glow_high.splat {value = 0.5} : tensor<f32>
  %1 = glow_high.reduce_mean %x {axes = [1]} : tensor<2x1xf32>
  %2 = glow_high.sub %x, %1 : tensor<2x4xf32>
  %3 = glow_high.mul %2, %2 : tensor<2x4xf32>
  %4 = glow_high.reduce_mean %3 {axes = [1]} : tensor<2x1xf32>
  %5 = glow_high.add %epsilon, %4 : tensor<2x1xf32>
  %6 = glow_high.sqrt %5 : tensor<2x1xf32>
  %7 = glow_high.reciprocal %6 : tensor<2x1xf32>
  %8 = glow_high.mul %7, %scale : tensor<2x4xf32>
  %9 = glow_high.mul %x, %8 : tensor<2x4xf32>
  %10 = glow_high.mul %1, %8 : tensor<2x4xf32>
  %11 = glow_high.sub %scale, %10 : tensor<2x4xf32>
  %12 = glow_high.add %9, %11 : tensor<2x4xf32>
  glow_high.return %12
}

// -----

// RMS normalization over two axes. A factor of another shape stays.

// CHECK-LABEL: glow_high.func @rms(
// CHECK:         %[[NORMAL:.*]] = glow_high.rms_normalization %x, %{{.*}} {axis = -2, epsilon = 0.5} : tensor<2x4x1xf32>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.mul %[[NORMAL]], %gate
// CHECK-NEXT:    glow_high.return %[[Y]]
glow_high.func @rms(%x: tensor<2x4x1xf32>, %gate: tensor<2x1x1xf32>) -> tensor<2x4x1xf32> {
  %epsilon = glow_high.splat {value = 0.5} : tensor<f32>
  %power = glow_high.splat {value = -0.5} : tensor<f32>
  %1 = glow_high.mul %x, %x : tensor<2x4x1xf32>
  %2 = glow_high.reduce_mean %1 {axes = [1, 2]} : tensor<2x1x1xf32>
  %3 = glow_high.add %2, %epsilon : tensor<2x1x1xf32>
  %4 = glow_high.pow %3, %power : tensor<2x1x1xf32>
  %5 = glow_high.mul %x, %4 : tensor<2x4x1xf32>
  %6 = glow_high.mul %5, %gate : tensor<2x4x1xf32>
  glow_high.return %6
}

// -----

// Not over leading axes, nor where something else reads the root.

// CHECK-LABEL: glow_high.func @no(
// CHECK-NOT:     _normalization
// CHECK:         glow_high.save %{{.*}}, @z
glow_high.placeholder @x : tensor<2x4xf32> {input}
glow_high.placeholder @y : tensor<2x4xf32> {output}
glow_high.placeholder @r : tensor<2x1xf32> {output}
glow_high.placeholder @z : tensor<2x4xf32> {output}
glow_high.func @no(@x, @y, @r, @z) {
  %x = glow_high.get @x : tensor<2x4xf32>
  %epsilon = glow_high.splat {value = 0.5} : tensor<f32>
  %1 = glow_high.mul %x, %x : tensor<2x4xf32>
  %2 = glow_high.reduce_mean %1 {axes = [0]} : tensor<1x4xf32>
  %3 = glow_high.add %2, %epsilon : tensor<1x4xf32>
  %4 = glow_high.sqrt %3 : tensor<1x4xf32>
  %5 = glow_high.div %x, %4 : tensor<2x4xf32>
  glow_high.save %5, @y
  %6 = glow_high.mul %x, %x : tensor<2x4xf32>
  %7 = glow_high.reduce_mean %6 {axes = [1]} : tensor<2x1xf32>
  %8 = glow_high.add %7, %epsilon : tensor<2x1xf32>
  %9 = glow_high.sqrt %8 : tensor<2x1xf32>
  glow_high.save %9, @r
  %10 = glow_high.div %x, %9 : tensor<2x4xf32>
  glow_high.save %10, @z
}

// -----

// Two constant factors of more axes than the normalization has are one scale.

// CHECK-LABEL: glow_high.func @factors(
// CHECK:         %[[SCALE:.*]] = glow_high.get @scale : tensor<4xf32>
// CHECK:         glow_high.rms_normalization %{{.*}}, %[[SCALE]] {{.*}}: tensor<2x4xf32>
// CHECK-NOT:     glow_high.mul
glow_high.constant @a : tensor<1x4xf32> {value = dense<[[1.0, 2.0, 3.0, 4.0]]> : tensor<1x4xf32>}
glow_high.constant @b : tensor<1x4xf32> {value = dense<[[5.0, 6.0, 7.0, 8.0]]> : tensor<1x4xf32>}
glow_high.func @factors(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %epsilon = glow_high.splat {value = 0.5} : tensor<f32>
  %a = glow_high.get @a : tensor<1x4xf32>
  %b = glow_high.get @b : tensor<1x4xf32>
  %1 = glow_high.mul %x, %x : tensor<2x4xf32>
  %2 = glow_high.reduce_mean %1 {axes = [1]} : tensor<2x1xf32>
  %3 = glow_high.add %2, %epsilon : tensor<2x1xf32>
  %4 = glow_high.sqrt %3 : tensor<2x1xf32>
  %5 = glow_high.div %x, %4 : tensor<2x4xf32>
  %6 = glow_high.mul %5, %a : tensor<2x4xf32>
  %7 = glow_high.mul %6, %b : tensor<2x4xf32>
  glow_high.return %7
}

// -----

// A sum over the number of its elements is a mean; one over another number is not.

// CHECK-LABEL: glow_high.func @mean(
// CHECK:         %[[MEAN:.*]] = glow_high.reduce_mean %x {axes = [1]} : tensor<2x1xf32>
// CHECK:         %[[SUM:.*]] = glow_high.reduce_sum %x {axes = [1]}
// CHECK:         glow_high.div %[[SUM]]
glow_high.func @mean(%x: tensor<2x6xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>) {
  %six = glow_high.splat {value = 6.0} : tensor<f32>
  %seven = glow_high.splat {value = 7.0} : tensor<f32>
  %1 = glow_high.reduce_sum %x {axes = [1]} : tensor<2x1xf32>
  %2 = glow_high.div %1, %six : tensor<2x1xf32>
  %3 = glow_high.reduce_sum %x {axes = [1]} : tensor<2x1xf32>
  %4 = glow_high.div %3, %seven : tensor<2x1xf32>
  glow_high.return %2, %4
}
