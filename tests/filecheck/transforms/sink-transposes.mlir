// Transposes move towards the outputs and meet there.

// RUN: glow-opt %s -p sink-transposes --split-input-file | filecheck %s

// Two inverse transposes around elementwise operators vanish; a constant between them is transposed itself.

// CHECK-LABEL: glow_high.func @vanish(
// CHECK-NEXT:    %[[RELU:.*]] = glow_high.relu %x : tensor<1x2x3x4xf32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.get @{{.*}} : tensor<1x1x3x4xf32>
// CHECK-NEXT:    %[[SUM:.*]] = glow_high.add %[[RELU]], %[[C]] : tensor<1x2x3x4xf32>
// CHECK-NEXT:    glow_high.return %[[SUM]]
glow_high.constant @c : tensor<4x1x3xf32> {value = dense<1.0> : tensor<4x1x3xf32>}
glow_high.func @vanish(%x: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %c = glow_high.get @c : tensor<4x1x3xf32>
  %1 = glow_high.transpose %x {permutation = [0, 3, 1, 2]} : tensor<1x4x2x3xf32>
  %2 = glow_high.relu %1 : tensor<1x4x2x3xf32>
  %3 = glow_high.add %2, %c : tensor<1x4x2x3xf32>
  %4 = glow_high.transpose %3 {permutation = [0, 2, 3, 1]} : tensor<1x2x3x4xf32>
  glow_high.return %4
}

// -----

// Concatenation and batch normalization take their axis along.

// CHECK-LABEL: glow_high.func @axes(
// CHECK:         %[[A:.*]] = glow_high.concat %x, %z {axis = 3} : tensor<1x2x3x8xf32>
// CHECK:         %[[B:.*]] = glow_high.batch_normalization %[[A]], %s, %s, %s, %s {axis = 3} : tensor<1x2x3x8xf32>
// CHECK-NEXT:    %[[T:.*]] = glow_high.transpose %[[B]] {permutation = [0, 3, 1, 2]} : tensor<1x8x2x3xf32>
// CHECK-NEXT:    glow_high.return %[[T]]
glow_high.func @axes(%s: tensor<8xf32>, %x: tensor<1x2x3x4xf32>, %z: tensor<1x2x3x4xf32>) -> tensor<1x8x2x3xf32> {
  %1 = glow_high.transpose %x {permutation = [0, 3, 1, 2]} : tensor<1x4x2x3xf32>
  %2 = glow_high.transpose %z {permutation = [0, 3, 1, 2]} : tensor<1x4x2x3xf32>
  %3 = glow_high.concat %1, %2 {axis = 1} : tensor<1x8x2x3xf32>
  %4 = glow_high.batch_normalization %3, %s, %s, %s, %s {axis = 1} : tensor<1x8x2x3xf32>
  glow_high.return %4
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
  %s = glow_high.splat {value = 1.0} : tensor<3xf32>
  %4 = glow_high.layer_normalization %3, %s : tensor<3x3xf32>
  glow_high.save %4, @w
}

// -----

// A transpose writes the interior of a pad of what is given, but few channels are planes of their own.

// CHECK-LABEL: glow_high.func @pads(
// CHECK:         %[[A:.*]] = glow_high.transpose %x {permutation = [0, 2, 3, 1]} : tensor<1x8x8x5xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.pad %[[A]] {pads = [0, 1, 1, 0, 0, 1, 1, 0]} : tensor<1x10x10x5xf32>
// CHECK:         %[[C:.*]] = glow_high.pad %z {pads = [0, 0, 1, 1, 0, 0, 1, 1]} : tensor<1x3x10x10xf32>
// CHECK-NEXT:    %[[D:.*]] = glow_high.transpose %[[C]] {permutation = [0, 2, 3, 1]} : tensor<1x10x10x3xf32>
// CHECK-NEXT:    glow_high.return %[[B]], %[[D]]
glow_high.func @pads(%x: tensor<1x5x8x8xf32>, %z: tensor<1x3x8x8xf32>) -> (tensor<1x10x10x5xf32>, tensor<1x10x10x3xf32>)
    attributes {target = #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v3">} {
  %1 = glow_high.transpose %x {permutation = [0, 2, 3, 1]} : tensor<1x8x8x5xf32>
  %2 = glow_high.pad %1 {pads = [0, 1, 1, 0, 0, 1, 1, 0]} : tensor<1x10x10x5xf32>
  %3 = glow_high.transpose %z {permutation = [0, 2, 3, 1]} : tensor<1x8x8x3xf32>
  %4 = glow_high.pad %3 {pads = [0, 1, 1, 0, 0, 1, 1, 0]} : tensor<1x10x10x3xf32>
  glow_high.return %2, %4
}

// -----

// A transpose moves up to a product that can exchange its factors, and stays below one that cannot.

// CHECK-LABEL: glow_high.func @gradient(
// CHECK:         %[[P:.*]] = glow_high.matmul %x, %y {transpose_left = true} : tensor<8x9xf32>
// CHECK-NEXT:    %[[T:.*]] = glow_high.transpose %[[P]] {permutation = [1, 0]} : tensor<9x8xf32>
// CHECK-NEXT:    %[[S:.*]] = glow_high.mul %[[T]], %rate : tensor<9x8xf32>
// CHECK-NEXT:    glow_high.sub %w, %[[S]]
// CHECK:         %[[Q:.*]] = glow_high.matmul %z, %y : tensor<8x9xf32>
// CHECK-NEXT:    %[[R:.*]] = glow_high.mul %[[Q]], %rate : tensor<8x9xf32>
// CHECK-NEXT:    glow_high.transpose %[[R]]
glow_high.func @gradient(%x: tensor<4x8xf32>, %y: tensor<4x9xf32>, %z: tensor<8x4xf32>, %w: tensor<9x8xf32>, %rate: tensor<f32>) -> (tensor<9x8xf32>, tensor<9x8xf32>) {
  %1 = glow_high.matmul %x, %y {transpose_left = true} : tensor<8x9xf32>
  %2 = glow_high.mul %1, %rate : tensor<8x9xf32>
  %3 = glow_high.transpose %2 {permutation = [1, 0]} : tensor<9x8xf32>
  %4 = glow_high.sub %w, %3 : tensor<9x8xf32>
  %5 = glow_high.matmul %z, %y : tensor<8x9xf32>
  %6 = glow_high.mul %5, %rate : tensor<8x9xf32>
  %7 = glow_high.transpose %6 {permutation = [1, 0]} : tensor<9x8xf32>
  %8 = glow_high.sub %w, %7 : tensor<9x8xf32>
  glow_high.return %4, %8
}
