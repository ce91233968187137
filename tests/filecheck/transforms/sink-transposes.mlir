// Transposes move towards the outputs and meet there.

// RUN: glow-opt %s -p sink-transposes --split-input-file | filecheck %s

// Two inverse transposes around elementwise operators vanish; a constant between them is transposed itself.

// CHECK-LABEL: glow_high.func @vanish(
// CHECK-NEXT:    %x = glow_high.get @x
// CHECK-NEXT:    %[[RELU:.*]] = glow_high.relu %x : tensor<1x2x3x4xf32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.get @{{.*}} : tensor<1x1x3x4xf32>
// CHECK-NEXT:    %[[SUM:.*]] = glow_high.add %[[RELU]], %[[C]] : tensor<1x2x3x4xf32>
// CHECK-NEXT:    glow_high.save %[[SUM]], @y
glow_high.constant @c : tensor<4x1x3xf32> {value = dense<1.0> : tensor<4x1x3xf32>}
glow_high.placeholder @x : tensor<1x2x3x4xf32> {input}
glow_high.placeholder @y : tensor<1x2x3x4xf32> {output}
glow_high.func @vanish(@x, @y) {
  %x = glow_high.get @x : tensor<1x2x3x4xf32>
  %c = glow_high.get @c : tensor<4x1x3xf32>
  %1 = glow_high.transpose %x {permutation = [0, 3, 1, 2]} : tensor<1x4x2x3xf32>
  %2 = glow_high.relu %1 : tensor<1x4x2x3xf32>
  %3 = glow_high.add %2, %c : tensor<1x4x2x3xf32>
  %4 = glow_high.transpose %3 {permutation = [0, 2, 3, 1]} : tensor<1x2x3x4xf32>
  glow_high.save %4, @y
}

// -----

// Concatenation and batch normalization take their axis along.

// CHECK-LABEL: glow_high.func @axes(
// CHECK:         %[[A:.*]] = glow_high.concat %x, %x {axis = 3} : tensor<1x2x3x8xf32>
// CHECK:         %[[B:.*]] = glow_high.batch_normalization %[[A]], %s, %s, %s, %s {axis = 3} : tensor<1x2x3x8xf32>
// CHECK-NEXT:    %[[T:.*]] = glow_high.transpose %[[B]] {permutation = [0, 3, 1, 2]} : tensor<1x8x2x3xf32>
// CHECK-NEXT:    glow_high.save %[[T]], @y
glow_high.placeholder @s : tensor<8xf32> {input}
glow_high.placeholder @x : tensor<1x2x3x4xf32> {input}
glow_high.placeholder @y : tensor<1x8x2x3xf32> {output}
glow_high.func @axes(@s, @x, @y) {
  %s = glow_high.get @s : tensor<8xf32>
  %x = glow_high.get @x : tensor<1x2x3x4xf32>
  %1 = glow_high.transpose %x {permutation = [0, 3, 1, 2]} : tensor<1x4x2x3xf32>
  %2 = glow_high.transpose %x {permutation = [0, 3, 1, 2]} : tensor<1x4x2x3xf32>
  %3 = glow_high.concat %1, %2 {axis = 1} : tensor<1x8x2x3xf32>
  %4 = glow_high.batch_normalization %3, %s, %s, %s, %s {axis = 1} : tensor<1x8x2x3xf32>
  glow_high.save %4, @y
}

// -----

// A transpose that moves only axes of size one is a reshape; an identity is nothing.

// CHECK-LABEL: glow_high.func @units(
// CHECK:         %[[A:.*]] = glow_high.reshape %x {shape = [1, 1, 4]} : tensor<1x1x4xf32>
// CHECK-NEXT:    glow_high.save %[[A]], @y
// CHECK-NEXT:    glow_high.save %x, @z
glow_high.placeholder @x : tensor<1x4x1xf32> {input}
glow_high.placeholder @y : tensor<1x1x4xf32> {output}
glow_high.placeholder @z : tensor<1x4x1xf32> {output}
glow_high.func @units(@x, @y, @z) {
  %x = glow_high.get @x : tensor<1x4x1xf32>
  %1 = glow_high.transpose %x {permutation = [2, 0, 1]} : tensor<1x1x4xf32>
  glow_high.save %1, @y
  %2 = glow_high.transpose %x {permutation = [0, 1, 2]} : tensor<1x4x1xf32>
  glow_high.save %2, @z
}

// -----

// Nothing moves where operands are transposed differently or not at all, or the operator depends on the layout.

// CHECK-LABEL: glow_high.func @stay(
// CHECK:         %[[A:.*]] = glow_high.transpose %x {permutation = [1, 0]}
// CHECK:         glow_high.add %[[A]], %z
// CHECK:         %[[B:.*]] = glow_high.transpose %x {permutation = [1, 0]}
// CHECK:         glow_high.layer_normalization %[[B]]
glow_high.placeholder @x : tensor<3x3xf32> {input}
glow_high.placeholder @z : tensor<3x3xf32> {input}
glow_high.placeholder @y : tensor<3x3xf32> {output}
glow_high.placeholder @w : tensor<3x3xf32> {output}
glow_high.func @stay(@x, @z, @y, @w) {
  %x = glow_high.get @x : tensor<3x3xf32>
  %z = glow_high.get @z : tensor<3x3xf32>
  %1 = glow_high.transpose %x {permutation = [1, 0]} : tensor<3x3xf32>
  %2 = glow_high.add %1, %z : tensor<3x3xf32>
  glow_high.save %2, @y
  %3 = glow_high.transpose %x {permutation = [1, 0]} : tensor<3x3xf32>
  %s = glow_high.splat {value = 1.0, shape = [3]} : tensor<3xf32>
  %4 = glow_high.layer_normalization %3, %s : tensor<3x3xf32>
  glow_high.save %4, @w
}

// -----

// Operators with axes compute along the axes of the origin.

// CHECK-LABEL: glow_high.func @axes(
// CHECK:         %[[S:.*]] = glow_high.softmax %x {axis = 3}
// CHECK-NEXT:    %[[P:.*]] = glow_high.pad %[[S]] {pads = [0, 1, 2, 0, 0, 3, 4, 0]}
// CHECK-NEXT:    %[[L:.*]] = glow_high.slice %[[P]] {starts = [0, 1, 0, 2], ends = [1, 9, 12, 5]}
// CHECK-NEXT:    %[[R:.*]] = glow_high.reduce_mean %[[L]] {axes = [1, 2]}
// CHECK-NEXT:    %[[V:.*]] = glow_high.transpose %[[R]] {permutation = [0, 3, 1, 2]}
// CHECK-NEXT:    glow_high.save %[[V]], @y
glow_high.placeholder @x : tensor<1x6x6x5xf32> {input}
glow_high.placeholder @y : tensor<1x3x1x1xf32> {output}
glow_high.func @axes(@x, @y) {
  %x = glow_high.get @x : tensor<1x6x6x5xf32>
  %1 = glow_high.transpose %x {permutation = [0, 3, 1, 2]} : tensor<1x5x6x6xf32>
  %2 = glow_high.softmax %1 {axis = 1} : tensor<1x5x6x6xf32>
  %3 = glow_high.pad %2 {pads = [0, 0, 1, 2, 0, 0, 3, 4]} : tensor<1x5x10x12xf32>
  %4 = glow_high.slice %3 {starts = [0, 2, 1, 0], ends = [1, 5, 9, 12]} : tensor<1x3x8x12xf32>
  %5 = glow_high.reduce_mean %4 {axes = [2, 3]} : tensor<1x3x1x1xf32>
  glow_high.save %5, @y
}
