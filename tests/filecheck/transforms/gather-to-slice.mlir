// Gathers with known indices at even distances are slices.

// RUN: glow-opt %s -p gather-to-slice | filecheck %s

glow_high.constant @up : tensor<3xi64> {value = dense<[1, 2, 3]> : tensor<3xi64>}
glow_high.constant @down : tensor<1x3xi64> {value = dense<[[-1, -3, -5]]> : tensor<1x3xi64>}
glow_high.constant @equal : tensor<2xi64> {value = dense<[2, 2]> : tensor<2xi64>}
glow_high.constant @uneven : tensor<3xi64> {value = dense<[0, 1, 3]> : tensor<3xi64>}
glow_high.placeholder @x : tensor<4x5xf32> {input}
glow_high.placeholder @i : tensor<3xi64> {input}
glow_high.placeholder @a : tensor<3x5xf32> {output}
glow_high.placeholder @b : tensor<4x1x3xf32> {output}
glow_high.placeholder @c : tensor<4x2xf32> {output}

// CHECK-LABEL: glow_high.func @even(
// CHECK:         %[[A:.*]] = glow_high.slice %x {starts = [1, 0], ends = [4, 5]} : tensor<3x5xf32>
// CHECK-NEXT:    %[[R:.*]] = glow_high.reshape %[[A]] {shape = [3, 5]}
// CHECK-NEXT:    glow_high.save %[[R]], @a
// CHECK-NEXT:    %[[B:.*]] = glow_high.slice %x {starts = [0, 4], ends = [4, -1], steps = [1, -2]} : tensor<4x3xf32>
// CHECK-NEXT:    %[[S:.*]] = glow_high.reshape %[[B]] {shape = [4, 1, 3]}
// CHECK-NEXT:    glow_high.save %[[S]], @b
// CHECK-NEXT:    %[[C:.*]] = glow_high.slice %x {starts = [0, 2], ends = [4, 3]} : tensor<4x1xf32>
// CHECK-NEXT:    %[[E:.*]] = glow_high.expand %[[C]] {shape = [4, 2]} : tensor<4x2xf32>
glow_high.func @even(@x, @a, @b, @c) {
  %x = glow_high.get @x : tensor<4x5xf32>
  %up = glow_high.get @up : tensor<3xi64>
  %down = glow_high.get @down : tensor<1x3xi64>
  %equal = glow_high.get @equal : tensor<2xi64>
  %1 = glow_high.gather %x, %up : tensor<3x5xf32>
  glow_high.save %1, @a
  %2 = glow_high.gather %x, %down {axis = 1} : tensor<4x1x3xf32>
  glow_high.save %2, @b
  %3 = glow_high.gather %x, %equal {axis = -1} : tensor<4x2xf32>
  glow_high.save %3, @c
}

// Uneven ones and those of run time stay.

// CHECK-LABEL: glow_high.func @stay(
// CHECK:         glow_high.gather %x, %uneven
// CHECK:         glow_high.gather %x, %i
glow_high.func @stay(@x, @i, @a) {
  %x = glow_high.get @x : tensor<4x5xf32>
  %uneven = glow_high.get @uneven : tensor<3xi64>
  %i = glow_high.get @i : tensor<3xi64>
  %1 = glow_high.gather %x, %uneven : tensor<3x5xf32>
  glow_high.save %1, @a
  %2 = glow_high.gather %x, %i : tensor<3x5xf32>
  glow_high.save %2, @a
}
