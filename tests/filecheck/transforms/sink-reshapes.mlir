// Reshapes move below elementwise operators and meet there.

// RUN: glow-opt %s -p sink-reshapes | filecheck %s

glow_high.constant @c : tensor<3x4xf32> {value = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 1.0, 2.0, 3.0]]> : tensor<3x4xf32>}
glow_high.placeholder @x : tensor<2x6xf32> {input}
glow_high.placeholder @z : tensor<12xf32> {input}
glow_high.placeholder @b : tensor<4xf32> {input}
glow_high.placeholder @w : tensor<3x4xf32> {output}

// CHECK-LABEL: glow_high.func @vanish(
// CHECK:         %[[R:.*]] = glow_high.relu %x : tensor<2x6xf32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.get @{{.*}} : tensor<2x6xf32>
// CHECK-NEXT:    %[[A:.*]] = glow_high.add %[[R]], %[[C]] : tensor<2x6xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.mul %[[A]], %x : tensor<2x6xf32>
// CHECK-NEXT:    glow_high.return %[[B]]
glow_high.func @vanish(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  %c = glow_high.get @c : tensor<3x4xf32>
  %1 = glow_high.reshape %x {shape = [12, 1]} : tensor<12x1xf32>
  %2 = glow_high.reshape %1 {shape = [3, 4]} : tensor<3x4xf32>
  %3 = glow_high.relu %2 : tensor<3x4xf32>
  %4 = glow_high.add %3, %c : tensor<3x4xf32>
  %5 = glow_high.mul %4, %2 : tensor<3x4xf32>
  %6 = glow_high.reshape %5 {shape = [2, 6]} : tensor<2x6xf32>
  glow_high.return %6
}

// Operands that broadcast, or had other shapes, keep the reshape in front.

// CHECK-LABEL: glow_high.func @stay(
// CHECK:         %[[R:.*]] = glow_high.reshape %x {shape = [3, 4]}
// CHECK-NEXT:    glow_high.add %[[R]], %b : tensor<3x4xf32>
// CHECK:         %[[S:.*]] = glow_high.reshape %z {shape = [3, 4]}
// CHECK-NEXT:    glow_high.mul %[[R]], %[[S]] : tensor<3x4xf32>
glow_high.func @stay(@x, @z, @b, @w) {
  %x = glow_high.get @x : tensor<2x6xf32>
  %z = glow_high.get @z : tensor<12xf32>
  %b = glow_high.get @b : tensor<4xf32>
  %1 = glow_high.reshape %x {shape = [3, 4]} : tensor<3x4xf32>
  %2 = glow_high.add %1, %b : tensor<3x4xf32>
  glow_high.save %2, @w
  %3 = glow_high.reshape %z {shape = [3, 4]} : tensor<3x4xf32>
  %4 = glow_high.mul %1, %3 : tensor<3x4xf32>
  glow_high.save %4, @w
}
