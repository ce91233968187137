// What follows or precedes a matrix product, and is linear with constants a channel, moves into its operand and bias.

// RUN: glow-opt %s -p fold-into-weights --split-input-file | filecheck %s
// RUN: glow-opt %s -p fold-into-weights --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// Matrix products: what follows goes into the columns and a bias, what precedes into the rows; a sum before it becomes a
// bias too.

// CHECK-LABEL: glow_high.func @products(
// CHECK:         %[[PRODUCT:.*]] = glow_high.matmul %x, %{{.*}}, %{{.*}} : tensor<3x2xf32>
// CHECK-NEXT:    glow_high.save %[[PRODUCT]], @y
// CHECK:         %[[TRANSPOSED:.*]] = glow_high.matmul %x, %{{.*}} {transpose_right = true} : tensor<3x2xf32>
// CHECK-NEXT:    glow_high.save %[[TRANSPOSED]], @z
// CHECK:         %[[LAYER:.*]] = glow_high.fully_connected %x, %{{.*}}, %{{.*}} : tensor<3x2xf32>
// CHECK-NEXT:    glow_high.save %[[LAYER]], @w
glow_high.constant @weights : tensor<2x2xf32> {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}
glow_high.constant @two : tensor<2xf32> {value = dense<[2.0, 4.0]> : tensor<2xf32>}
glow_high.placeholder @x : tensor<3x2xf32> {input}
glow_high.placeholder @y : tensor<3x2xf32> {output}
glow_high.placeholder @z : tensor<3x2xf32> {output}
glow_high.placeholder @w : tensor<3x2xf32> {output}
glow_high.func @products(@x, @y, @z, @w) {
  %x = glow_high.get @x : tensor<3x2xf32>
  %weights = glow_high.get @weights : tensor<2x2xf32>
  %two = glow_high.get @two : tensor<2xf32>
  %1 = glow_high.add %x, %two : tensor<3x2xf32>
  %2 = glow_high.matmul %1, %weights : tensor<3x2xf32>
  %3 = glow_high.mul %2, %two : tensor<3x2xf32>
  %4 = glow_high.add %two, %3 : tensor<3x2xf32>
  glow_high.save %4, @y
  %5 = glow_high.mul %x, %two : tensor<3x2xf32>
  %6 = glow_high.matmul %5, %weights {transpose_right = true} : tensor<3x2xf32>
  %7 = glow_high.div %6, %two : tensor<3x2xf32>
  glow_high.save %7, @z
  %8 = glow_high.sub %two, %x : tensor<3x2xf32>
  %9 = glow_high.fully_connected %8, %weights, %two : tensor<3x2xf32>
  glow_high.save %9, @w
}

// -----

// A vector added to a product of variable matrices is no bias: it may be a mask, and sums must not start from that.

// CHECK-LABEL: glow_high.func @vector(
// CHECK:         %[[PRODUCT:.*]] = glow_high.matmul %x, %u : tensor<3x2xf32>
// CHECK-NEXT:    glow_high.add %v, %[[PRODUCT]] : tensor<3x2xf32>
glow_high.func @vector(%x: tensor<3x2xf32>, %u: tensor<2x2xf32>, %v: tensor<1x2xf32>) -> tensor<3x2xf32> {
  %1 = glow_high.matmul %x, %u : tensor<3x2xf32>
  %2 = glow_high.add %v, %1 : tensor<3x2xf32>
  glow_high.return %2
}

// -----

// The scale of attention goes through the product and the rearrangement of heads into the weights of the queries.

// CHECK-LABEL: glow_high.func @attention(
// CHECK-NOT:     glow_high.div
// CHECK:         %[[SCORES:.*]] = glow_high.matmul %{{.*}}, %k : tensor<2x3x3xf32>
// CHECK-NEXT:    glow_high.return %[[SCORES]]

// LOCATIONS: glow_high.matmul %x, %{{.*}}, %{{.*}} {{.*}} loc(fused["queries", "scale"])
glow_high.constant @weights : tensor<2x2xf32> {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}
glow_high.constant @two : tensor<2xf32> {value = dense<[2.0, 4.0]> : tensor<2xf32>}
glow_high.func @attention(%x: tensor<3x2xf32>, %k: tensor<2x1x3xf32>) -> tensor<2x3x3xf32> {
  %weights = glow_high.get @weights : tensor<2x2xf32>
  %two = glow_high.get @two : tensor<2xf32>
  %root = glow_high.splat {value = 1.5} : tensor<f32>
  %1 = glow_high.matmul %x, %weights, %two : tensor<3x2xf32> loc("queries")
  %2 = glow_high.reshape %1 {shape = [3, 2, 1]} : tensor<3x2x1xf32>
  %3 = glow_high.transpose %2 {permutation = [1, 0, 2]} : tensor<2x3x1xf32>
  %4 = glow_high.matmul %3, %k : tensor<2x3x3xf32>
  %5 = glow_high.div %4, %root : tensor<2x3x3xf32> loc("scale")
  glow_high.return %5
}

// -----

// Weights that would be too small for their type to have their digits stay as they are.

// CHECK-LABEL: glow_high.func @too_small(
// CHECK:         %[[P:.*]] = glow_high.matmul %{{.*}}, %w : tensor<2x4xf16>
// CHECK-NEXT:    %[[Q:.*]] = glow_high.mul %[[P]], %small : tensor<2x4xf16>
// CHECK-NEXT:    glow_high.return %[[Q]]
glow_high.constant @w : tensor<3x4xf16> {value = dense<1.0e-3> : tensor<3x4xf16>}
glow_high.func @too_small(%x: tensor<2x3xf16>) -> tensor<2x4xf16> {
  %w = glow_high.get @w : tensor<3x4xf16>
  %small = glow_high.splat {value = 1.0e-3 : f16} : tensor<f16>
  %1 = glow_high.matmul %x, %w : tensor<2x4xf16>
  %2 = glow_high.mul %1, %small : tensor<2x4xf16>
  glow_high.return %2
}
