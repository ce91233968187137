// Gradients become operators, in reverse order of what they are gradients of.

// RUN: glow-opt %s -p differentiate --split-input-file | filecheck %s
// RUN: glow-opt %s -p differentiate --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// CHECK-LABEL: glow_high.func @layer(
// CHECK:         %[[H:.*]] = glow_high.matmul %x, %w
// CHECK:         %[[SEED:.*]] = glow_high.splat {value = 1.0} : tensor<8x2xf32>
// CHECK:         %[[CONDITION:.*]] = glow_high.greater %[[H]]
// CHECK:         %[[G:.*]] = glow_high.where %[[CONDITION]], %[[SEED]]
// CHECK-NEXT:    %[[DX:.*]] = glow_high.matmul %[[G]], %w {transpose_right = true} : tensor<8x4xf32>
// CHECK-NEXT:    %[[DW:.*]] = glow_high.matmul %x, %[[G]] {transpose_left = true} : tensor<4x2xf32>
// CHECK-NEXT:    glow_high.return %[[DX]], %[[DW]]

// LOCATIONS: glow_high.where {{.*}} loc("activation")
// LOCATIONS: glow_high.matmul {{.*}} loc("product")
// LOCATIONS: glow_high.matmul {{.*}} loc("product")
glow_high.func @layer(%x: tensor<8x4xf32>, %w: tensor<4x2xf32>) -> (tensor<8x4xf32>, tensor<4x2xf32>) {
  %h = glow_high.matmul %x, %w : tensor<8x2xf32> loc("product")
  %y = glow_high.relu %h : tensor<8x2xf32> loc("activation")
  %dx, %dw = glow_high.gradient %y, none, %x, %w : tensor<8x4xf32>, tensor<4x2xf32>
  glow_high.return %dx, %dw
}

// -----

// What is given as the cotangent takes the place of ones; what has no influence has the gradient 0.

// CHECK-LABEL: glow_high.func @cotangent(
// CHECK:         %[[DX:.*]] = glow_high.mul %g, %{{.*}} : tensor<4xf32>
// CHECK-NEXT:    %[[DZ:.*]] = glow_high.splat {value = 0.0} : tensor<4xf32>
// CHECK-NEXT:    glow_high.return %[[DX]], %[[DZ]]
glow_high.func @cotangent(%x: tensor<4xf32>, %g: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = glow_high.exp %x : tensor<4xf32>
  %dx, %dz = glow_high.gradient %y, %g, %x, %z : tensor<4xf32>, tensor<4xf32>
  glow_high.return %dx, %dz
}

// -----

// Operands that broadcast get the sum; a value with two users gets the sum of what both hand on.

// CHECK-LABEL: glow_high.func @sums(
// CHECK:         %[[DX:.*]] = glow_high.add
// CHECK:         %[[DB:.*]] = glow_high.reduce_sum %{{.*}} {axes = [0]} : tensor<1x4xf32>
// CHECK-NEXT:    glow_high.return %[[DX]], %[[DB]]
glow_high.func @sums(%x: tensor<3x4xf32>, %b: tensor<1x4xf32>) -> (tensor<3x4xf32>, tensor<1x4xf32>) {
  %0 = glow_high.mul %x, %b : tensor<3x4xf32>
  %1 = glow_high.sin %x : tensor<3x4xf32>
  %2 = glow_high.add %0, %1 : tensor<3x4xf32>
  %dx, %db = glow_high.gradient %2, none, %x, %b : tensor<3x4xf32>, tensor<1x4xf32>
  glow_high.return %dx, %db
}

// -----

// The gradient of a gradient is of second order: the first one is replaced before the other.

// CHECK-LABEL: glow_high.func @second_order(
// CHECK-NOT:     glow_high.cos
// CHECK:         %[[SINE:.*]] = glow_high.sin %x
// CHECK-NEXT:    %[[NEGATIVE:.*]] = glow_high.neg %[[SINE]]
// CHECK-NEXT:    %[[SECOND:.*]] = glow_high.mul %{{.*}}, %[[NEGATIVE]]
// CHECK-NEXT:    glow_high.return %[[SECOND]]
glow_high.func @second_order(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = glow_high.sin %x : tensor<4xf32>
  %first = glow_high.gradient %y, none, %x : tensor<4xf32>
  %second = glow_high.gradient %first, none, %x : tensor<4xf32>
  glow_high.return %second
}

// -----

// The exponential of softmax is not computed again: its result is enough.

// CHECK-LABEL: glow_high.func @softmax(
// CHECK:         %[[Y:.*]] = glow_high.softmax %x
// CHECK-NEXT:    %[[D:.*]] = glow_high.generic %[[Y]], %g
// CHECK-NOT:     math.exp
// CHECK:         glow_high.return %[[D]]
glow_high.func @softmax(%x: tensor<3x4xf32>, %g: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y = glow_high.softmax %x {axis = 1} : tensor<3x4xf32>
  %d = glow_high.gradient %y, %g, %x : tensor<3x4xf32>
  glow_high.return %d
}

// -----

// What an exporter wrote of a function is that function: one value is kept, and not each of its parts.

// CHECK-LABEL: glow_high.func @written(
// CHECK:         %[[Y:.*]] = glow_high.swish %x
// CHECK-COUNT-1: glow_high.sigmoid
// CHECK-NOT:     glow_high.sigmoid
glow_high.func @written(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = glow_high.sigmoid %x : tensor<4xf32>
  %y = glow_high.mul %x, %s : tensor<4xf32>
  %z = glow_high.mul %y, %y : tensor<4xf32>
  %dx = glow_high.gradient %z, none, %x : tensor<4xf32>
  glow_high.return %dx
}

// -----

// The windows that have an element are windows with their taps in the opposite order. The sum that both reads need is
// computed once, and the rest are elementwise operators, which fuse.

// CHECK-LABEL: glow_high.func @response(
// CHECK-NEXT:    %[[SUM:.*]] = glow_high.generic %x {maps = [{{.*}}((d1 + d2) + -1))>{{.*}}extents = [8, 4]}
// CHECK-NOT:     glow_high.generic
// CHECK:         glow_high.pow
// CHECK:         glow_high.generic %{{.*}}, %x {maps = [{{.*}}((d1 + d2) + -2))>{{.*}}extents = [4]}
// CHECK-NOT:     glow_high.generic
// CHECK:         glow_high.return
glow_high.func @response(%x: tensor<3x8xf32>, %g: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %y = glow_high.lrn %x {size = 4, axis = 1} : tensor<3x8xf32>
  %d = glow_high.gradient %y, %g, %x : tensor<3x8xf32>
  glow_high.return %d
}
