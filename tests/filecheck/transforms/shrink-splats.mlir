// Operands of equal elements are single numbers.

// RUN: glow-opt %s -p shrink-splats | filecheck %s

glow_high.constant @equal : tensor<3xf32> {value = dense<2.5> : tensor<3xf32>}
glow_high.constant @unequal : tensor<3xf32> {value = dense<[2.5, 2.0, 2.5]> : tensor<3xf32>}
glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @w : tensor<3xf32> {input}
glow_high.placeholder @y : tensor<2x3xf32> {output}

// CHECK-LABEL: glow_high.func @shrink(
// CHECK:         %[[A:.*]] = glow_high.splat {value = 2.5} : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.add %x, %[[A]] : tensor<2x3xf32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.splat {value = 1.0} : tensor<f32>
// CHECK-NEXT:    %[[D:.*]] = glow_high.mul %[[C]], %[[B]] : tensor<2x3xf32>
// CHECK-NEXT:    glow_high.return %[[D]]
glow_high.func @shrink(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c = glow_high.get @equal : tensor<3xf32>
  %s = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %1 = glow_high.add %x, %c : tensor<2x3xf32>
  %2 = glow_high.mul %s, %1 : tensor<2x3xf32>
  glow_high.return %2
}

// Splats alone give a splat.

// CHECK-LABEL: glow_high.func @alone(
// CHECK-NEXT:    %[[A:.*]] = glow_high.splat {value = 3.0} : tensor<2x3xf32>
// CHECK-NEXT:    glow_high.return %[[A]]
glow_high.func @alone() -> tensor<2x3xf32> {
  %s = glow_high.splat {value = 1.0} : tensor<2x1xf32>
  %t = glow_high.splat {value = 2.0} : tensor<3xf32>
  %1 = glow_high.add %s, %t : tensor<2x3xf32>
  glow_high.return %1
}

// Elements that differ stay, and a splat that gives the result its shape.

// CHECK-LABEL: glow_high.func @stay(
// CHECK:         glow_high.add %x, %c : tensor<2x3xf32>
// CHECK:         glow_high.add %w, %s : tensor<2x3xf32>
glow_high.func @stay(@x, @w, @y) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %w = glow_high.get @w : tensor<3xf32>
  %c = glow_high.get @unequal : tensor<3xf32>
  %s = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %1 = glow_high.add %x, %c : tensor<2x3xf32>
  glow_high.save %1, @y
  %2 = glow_high.add %w, %s : tensor<2x3xf32>
  glow_high.save %2, @y
}
