// Transposes move below operators with axes, whose axes move with them.

// RUN: glow-opt %s -p sink-transposes --split-input-file | filecheck %s

// Operators with axes compute along the axes of the origin.

// CHECK-LABEL: glow_high.func @reduced(
// CHECK:         %[[S:.*]] = glow_high.softmax %x {axis = 3}
// CHECK-NEXT:    %[[P:.*]] = glow_high.pad %[[S]] {pads = [0, 1, 2, 0, 0, 3, 4, 0]}
// CHECK-NEXT:    %[[L:.*]] = glow_high.slice %[[P]] {starts = [0, 1, 0, 2], ends = [1, 9, 12, 5]}
// CHECK-NEXT:    %[[R:.*]] = glow_high.reduce_mean %[[L]] {axes = [1, 2]}
// CHECK-NEXT:    %[[V:.*]] = glow_high.transpose %[[R]] {permutation = [0, 3, 1, 2]}
// CHECK-NEXT:    glow_high.return %[[V]]
glow_high.func @reduced(%x: tensor<1x6x6x5xf32>) -> tensor<1x3x1x1xf32> {
  %1 = glow_high.transpose %x {permutation = [0, 3, 1, 2]} : tensor<1x5x6x6xf32>
  %2 = glow_high.softmax %1 {axis = 1} : tensor<1x5x6x6xf32>
  %3 = glow_high.pad %2 {pads = [0, 0, 1, 2, 0, 0, 3, 4]} : tensor<1x5x10x12xf32>
  %4 = glow_high.slice %3 {starts = [0, 2, 1, 0], ends = [1, 5, 9, 12]} : tensor<1x3x8x12xf32>
  %5 = glow_high.reduce_mean %4 {axes = [2, 3]} : tensor<1x3x1x1xf32>
  glow_high.return %5
}

// -----

// Operands of lower rank and those that vary along one axis are reshaped, where they broadcast.

// CHECK-LABEL: glow_high.func @broadcast(
// CHECK:         %[[V:.*]] = glow_high.reshape %v {shape = [1, 4, 1, 1]}
// CHECK-NEXT:    %[[A:.*]] = glow_high.add %x, %[[V]] : tensor<2x4x5x6xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.mul %[[A]], %z : tensor<2x4x5x6xf32>
// CHECK-NEXT:    %[[T:.*]] = glow_high.transpose %[[B]] {permutation = [0, 2, 3, 1]}
// CHECK-NEXT:    glow_high.return %[[T]]
glow_high.func @broadcast(%x: tensor<2x4x5x6xf32>, %v: tensor<4xf32>, %z: tensor<4x5x6xf32>) -> tensor<2x5x6x4xf32> {
  %1 = glow_high.transpose %x {permutation = [0, 2, 3, 1]} : tensor<2x5x6x4xf32>
  %2 = glow_high.add %1, %v : tensor<2x5x6x4xf32>
  %3 = glow_high.transpose %z {permutation = [1, 2, 0]} : tensor<5x6x4xf32>
  %4 = glow_high.mul %2, %3 : tensor<2x5x6x4xf32>
  glow_high.return %4
}

// -----

// Reductions that drop axes transpose what is left; all results of an operator are transposed alike.

// CHECK-LABEL: glow_high.func @dropped(
// CHECK:         %[[S:.*]] = glow_high.reduce_sum %x {axes = [3], keepdims = false} : tensor<2x5x6xf32>
// CHECK-NEXT:    %[[M:.*]] = glow_high.arg_max %[[S]] {axis = 0, keepdims = false} : tensor<5x6xi64>
// CHECK-NEXT:    %[[N:.*]] = glow_high.transpose %[[M]] {permutation = [1, 0]} : tensor<6x5xi64>
// CHECK-NEXT:    glow_high.save %[[N]], @n
// CHECK-NEXT:    %[[V:.*]], %[[I:.*]] = glow_high.top_k %x {k = 2, axis = 3}
// CHECK-NEXT:    %[[J:.*]] = glow_high.transpose %[[I]] {permutation = [0, 2, 3, 1]}
// CHECK-NEXT:    %[[C:.*]] = glow_high.cum_sum %[[V]] {axis = 2}
// CHECK-NEXT:    %[[T:.*]] = glow_high.transpose %[[C]] {permutation = [0, 2, 3, 1]}
// CHECK-NEXT:    glow_high.save %[[T]], @y
// CHECK-NEXT:    glow_high.save %[[J]], @z
glow_high.placeholder @x : tensor<2x5x6x4xf32> {input}
glow_high.placeholder @n : tensor<6x5xi64> {output}
glow_high.placeholder @y : tensor<2x6x2x5xf32> {output}
glow_high.placeholder @z : tensor<2x6x2x5xi64> {output}
glow_high.func @dropped(@x, @n, @y, @z) {
  %x = glow_high.get @x : tensor<2x5x6x4xf32>
  %1 = glow_high.transpose %x {permutation = [0, 2, 3, 1]} : tensor<2x6x4x5xf32>
  %2 = glow_high.reduce_sum %1 {axes = [-2], keepdims = false} : tensor<2x6x5xf32>
  %3 = glow_high.arg_max %2 {axis = 0, keepdims = false} : tensor<6x5xi64>
  glow_high.save %3, @n
  %4, %5 = glow_high.top_k %1 {k = 2, axis = 2} : tensor<2x6x2x5xf32>, tensor<2x6x2x5xi64>
  %6 = glow_high.cum_sum %4 {axis = 1} : tensor<2x6x2x5xf32>
  glow_high.save %6, @y
  glow_high.save %5, @z
}

// -----

// Gathers put the axes of the indices in place of one; channels-first pools become channels-last ones.

// CHECK-LABEL: glow_high.func @gather(
// CHECK:         %[[G:.*]] = glow_high.gather %x, %i {axis = 3} : tensor<2x5x6x3x2xf32>
// CHECK-NEXT:    %[[T:.*]] = glow_high.transpose %[[G]] {permutation = [0, 3, 4, 1, 2]} : tensor<2x3x2x5x6xf32>
// CHECK-NEXT:    glow_high.save %[[T]], @y
// CHECK-NEXT:    %[[P:.*]] = glow_high.max_pool %x {kernel_shape = [1, 2], pads = [0, 1, 0, 0]} : tensor<2x5x6x4xf32>
// CHECK-NEXT:    %[[Q:.*]] = glow_high.transpose %[[P]] {permutation = [0, 3, 2, 1]} : tensor<2x4x6x5xf32>
// CHECK-NEXT:    glow_high.save %[[Q]], @z
glow_high.placeholder @x : tensor<2x5x6x4xf32> {input}
glow_high.placeholder @i : tensor<3x2xi64> {input}
glow_high.placeholder @y : tensor<2x3x2x5x6xf32> {output}
glow_high.placeholder @z : tensor<2x4x6x5xf32> {output}
glow_high.func @gather(@x, @i, @y, @z) {
  %x = glow_high.get @x : tensor<2x5x6x4xf32>
  %i = glow_high.get @i : tensor<3x2xi64>
  %1 = glow_high.transpose %x {permutation = [0, 3, 1, 2]} : tensor<2x4x5x6xf32>
  %2 = glow_high.gather %1, %i {axis = 1} : tensor<2x3x2x5x6xf32>
  glow_high.save %2, @y
  %3 = glow_high.transpose %x {permutation = [0, 3, 2, 1]} : tensor<2x4x6x5xf32>
  %4 = glow_high.max_pool %3 {kernel_shape = [2, 1], pads = [1, 0, 0, 0], layout = "channels_first"} : tensor<2x4x6x5xf32>
  glow_high.save %4, @z
}

// -----

// A pool stays with channels last; a layer normalization moves where its own axes stay.

// CHECK-LABEL: glow_high.func @layout(
// CHECK:         %[[T:.*]] = glow_high.transpose %x {permutation = [0, 2, 3, 1]}
// CHECK-NEXT:    glow_high.max_pool %[[T]]
// CHECK:         %[[L:.*]] = glow_high.layer_normalization %x, %s : tensor<2x4x5x6xf32>
// CHECK-NEXT:    %[[M:.*]] = glow_high.transpose %[[L]] {permutation = [0, 2, 1, 3]} : tensor<2x5x4x6xf32>
// CHECK-NEXT:    glow_high.save %[[M]], @z
glow_high.placeholder @x : tensor<2x4x5x6xf32> {input}
glow_high.placeholder @s : tensor<6xf32> {input}
glow_high.placeholder @y : tensor<2x4x5x4xf32> {output}
glow_high.placeholder @z : tensor<2x5x4x6xf32> {output}
glow_high.func @layout(@x, @s, @y, @z) {
  %x = glow_high.get @x : tensor<2x4x5x6xf32>
  %s = glow_high.get @s : tensor<6xf32>
  %1 = glow_high.transpose %x {permutation = [0, 2, 3, 1]} : tensor<2x5x6x4xf32>
  %2 = glow_high.max_pool %1 {kernel_shape = [2, 2]} : tensor<2x4x5x4xf32>
  glow_high.save %2, @y
  %3 = glow_high.transpose %x {permutation = [0, 2, 1, 3]} : tensor<2x5x4x6xf32>
  %4 = glow_high.layer_normalization %3, %s : tensor<2x5x4x6xf32>
  glow_high.save %4, @z
}

// -----

// A shuffle of channels, written for channels first, is one transpose between two reshapes of channels last.

// CHECK-LABEL: glow_high.func @shuffle(
// CHECK:         %[[A:.*]] = glow_high.reshape %x {shape = [1, 5, 6, 4, 3]}
// CHECK-NEXT:    %[[B:.*]] = glow_high.transpose %[[A]] {permutation = [0, 1, 2, 4, 3]}
// CHECK-NEXT:    %[[C:.*]] = glow_high.reshape %[[B]] {shape = [1, 5, 6, 12]}
// CHECK-NEXT:    %[[D:.*]] = glow_high.relu %[[C]] : tensor<1x5x6x12xf32>
// CHECK-NEXT:    glow_high.return %[[D]]
glow_high.func @shuffle(%x: tensor<1x5x6x12xf32>) -> tensor<1x5x6x12xf32> {
  %1 = glow_high.transpose %x {permutation = [0, 3, 1, 2]} : tensor<1x12x5x6xf32>
  %2 = glow_high.reshape %1 {shape = [1, 4, 3, 5, 6]} : tensor<1x4x3x5x6xf32>
  %3 = glow_high.transpose %2 {permutation = [0, 2, 1, 3, 4]} : tensor<1x3x4x5x6xf32>
  %4 = glow_high.reshape %3 {shape = [1, 12, 5, 6]} : tensor<1x12x5x6xf32>
  %5 = glow_high.relu %4 : tensor<1x12x5x6xf32>
  %6 = glow_high.transpose %5 {permutation = [0, 2, 3, 1]} : tensor<1x5x6x12xf32>
  glow_high.return %6
}

// -----

// A reshape that joins axes which lie apart needs a transpose before it: that is worth it only where one behind it meets
// its inverse.

// CHECK-LABEL: glow_high.func @apart(
// CHECK:         %[[A:.*]] = glow_high.transpose %x {permutation = [0, 2, 1, 3]}
// CHECK-NEXT:    %[[B:.*]] = glow_high.reshape %[[A]] {shape = [2, 5, 24]}
// CHECK-NEXT:    glow_high.return %[[B]]
glow_high.func @apart(%x: tensor<2x4x5x6xf32>) -> tensor<2x5x24xf32> {
  %1 = glow_high.transpose %x {permutation = [0, 2, 1, 3]} : tensor<2x5x4x6xf32>
  %2 = glow_high.reshape %1 {shape = [2, 5, 24]} : tensor<2x5x24xf32>
  glow_high.return %2
}

// -----

// A transpose that meets none is not left on a larger tensor, but for the border of a pad.

// CHECK-LABEL: glow_high.func @larger(
// CHECK:         %[[R:.*]] = glow_high.relu %x : tensor<4x5xf32>
// CHECK-NEXT:    %[[T:.*]] = glow_high.transpose %[[R]] {permutation = [1, 0]} : tensor<5x4xf32>
// CHECK-NEXT:    %[[A:.*]] = glow_high.tile %[[T]] {repeats = [3, 2]} : tensor<15x8xf32>
// CHECK-NEXT:    glow_high.save %[[A]], @y
// CHECK-NEXT:    %[[P:.*]] = glow_high.pad %z {pads = [0, 0, 1, 1, 0, 0, 1, 1]} : tensor<1x3x10x10xf32>
// CHECK-NEXT:    %[[Q:.*]] = glow_high.transpose %[[P]] {permutation = [0, 2, 3, 1]} : tensor<1x10x10x3xf32>
// CHECK-NEXT:    glow_high.save %[[Q]], @w
glow_high.placeholder @x : tensor<4x5xf32> {input}
glow_high.placeholder @z : tensor<1x3x8x8xf32> {input}
glow_high.placeholder @y : tensor<15x8xf32> {output}
glow_high.placeholder @w : tensor<1x10x10x3xf32> {output}
glow_high.func @larger(@x, @z, @y, @w) {
  %x = glow_high.get @x : tensor<4x5xf32>
  %z = glow_high.get @z : tensor<1x3x8x8xf32>
  %1 = glow_high.transpose %x {permutation = [1, 0]} : tensor<5x4xf32>
  %2 = glow_high.relu %1 : tensor<5x4xf32>
  %3 = glow_high.tile %2 {repeats = [3, 2]} : tensor<15x8xf32>
  glow_high.save %3, @y
  %4 = glow_high.transpose %z {permutation = [0, 2, 3, 1]} : tensor<1x8x8x3xf32>
  %5 = glow_high.pad %4 {pads = [0, 1, 1, 0, 0, 1, 1, 0]} : tensor<1x10x10x3xf32>
  glow_high.save %5, @w
}

// -----

// Below a slice of one element a transpose has nothing left to move, and the reshape behind it no axes.

// CHECK-LABEL: glow_high.func @one(
// CHECK:         %[[S:.*]] = glow_high.slice %x {starts = [2, 3], ends = [3, 4]} : tensor<1x1xf32>
// CHECK:         %[[R:.*]] = glow_high.reshape %{{.*}} {shape = [1]} : tensor<1xf32>
// CHECK-NEXT:    glow_high.return %[[R]]
glow_high.func @one(%x: tensor<4x5xf32>) -> tensor<1xf32> {
  %1 = glow_high.transpose %x {permutation = [1, 0]} : tensor<5x4xf32>
  %2 = glow_high.slice %1 {starts = [3, 2], ends = [4, 3]} : tensor<1x1xf32>
  %3 = glow_high.reshape %2 {shape = [1]} : tensor<1xf32>
  glow_high.return %3
}
