// Parts, and what is put together of parts.

// RUN: glow-opt %s -p canonicalize | filecheck %s

glow_high.placeholder @x : tensor<2x6xf32> {input}
glow_high.placeholder @v : tensor<2x6xf32> {input}
glow_high.placeholder @u : tensor<1x1x5xf32> {input}
glow_high.placeholder @y_2x2 : tensor<2x2xf32> {output}
glow_high.placeholder @y_2x4 : tensor<2x4xf32> {output}
glow_high.placeholder @y_2x6 : tensor<2x6xf32> {output}
glow_high.placeholder @y_2x9 : tensor<2x9xf32> {output}
glow_high.placeholder @y_2x12 : tensor<2x12xf32> {output}
glow_high.placeholder @y_2x24 : tensor<2x24xf32> {output}
glow_high.placeholder @y_4x10 : tensor<4x10xf32> {output}
glow_high.placeholder @y_1x4x10 : tensor<1x4x10xf32> {output}

// A part of one operand is a part of it, also where its elements come in reverse.
// CHECK-LABEL: glow_high.func @slice_of_concat(
// CHECK:         %[[A:.*]] = glow_high.slice %v {starts = [0, 3], ends = [2, 1], steps = [1, -1]} : tensor<2x2xf32>
// CHECK-NEXT:    glow_high.save %[[A]], @y_2x2
// CHECK-NEXT:    %[[B:.*]] = glow_high.slice %x {starts = [0, 3], ends = [2, -1], steps = [1, -1]} : tensor<2x4xf32>
// CHECK-NEXT:    glow_high.save %[[B]], @y_2x4
glow_high.func @slice_of_concat(@x, @v, @y_2x2, @y_2x4) {
  %x = glow_high.get @x : tensor<2x6xf32>
  %v = glow_high.get @v : tensor<2x6xf32>
  %0 = glow_high.concat %x, %v {axis = -1} : tensor<2x12xf32>
  %1 = glow_high.slice %0 {starts = [0, 9], ends = [2, 7], steps = [1, -1]} : tensor<2x2xf32>
  glow_high.save %1, @y_2x2
  %2 = glow_high.slice %0 {starts = [0, 4], ends = [2, -1], steps = [1, -1]} : tensor<2x5xf32>
  %3 = glow_high.slice %2 {starts = [0, 1], ends = [2, 5]} : tensor<2x4xf32>
  glow_high.save %3, @y_2x4
}

// Operands that a part does not touch are left out; a part of all stays.
// CHECK-LABEL: glow_high.func @narrower(
// CHECK:         %[[C:.*]] = glow_high.concat %v, %x {axis = 1} : tensor<2x12xf32>
// CHECK-NEXT:    %[[S:.*]] = glow_high.slice %[[C]] {starts = [0, 5], ends = [2, 9]} : tensor<2x4xf32>
// CHECK-NEXT:    glow_high.save %[[S]], @y_2x4
// CHECK-NEXT:    %[[D:.*]] = glow_high.concat %x, %v {axis = 1} : tensor<2x12xf32>
// CHECK-NEXT:    glow_high.slice %[[D]] {starts = [0, 5], ends = [2, 7]} : tensor<2x2xf32>
glow_high.func @narrower(@x, @v, @y_2x4, @y_2x2) {
  %x = glow_high.get @x : tensor<2x6xf32>
  %v = glow_high.get @v : tensor<2x6xf32>
  %0 = glow_high.concat %x, %v, %x {axis = 1} : tensor<2x18xf32>
  %1 = glow_high.slice %0 {starts = [0, 11], ends = [2, 15]} : tensor<2x4xf32>
  glow_high.save %1, @y_2x4
  %2 = glow_high.concat %x, %v {axis = 1} : tensor<2x12xf32>
  %3 = glow_high.slice %2 {starts = [0, 5], ends = [2, 7]} : tensor<2x2xf32>
  glow_high.save %3, @y_2x2
}

// A part within a border; one that takes some of the border stays.
// CHECK-LABEL: glow_high.func @slice_of_pad(
// CHECK:         %[[P:.*]] = glow_high.pad %x
// CHECK-NEXT:    %[[A:.*]] = glow_high.slice %x {starts = [0, 1], ends = [2, 5]} : tensor<2x4xf32>
// CHECK-NEXT:    glow_high.save %[[A]], @y_2x4
// CHECK-NEXT:    glow_high.slice %[[P]] {starts = [1, 1], ends = [3, 3]}
glow_high.func @slice_of_pad(@x, @y_2x4, @y_2x2) {
  %x = glow_high.get @x : tensor<2x6xf32>
  %0 = glow_high.pad %x {pads = [1, 2, 1, 0], mode = "edge"} : tensor<4x8xf32>
  %1 = glow_high.slice %0 {starts = [1, 3], ends = [3, 7]} : tensor<2x4xf32>
  glow_high.save %1, @y_2x4
  %2 = glow_high.slice %0 {starts = [1, 1], ends = [3, 3]} : tensor<2x2xf32>
  glow_high.save %2, @y_2x2
}

// All parts of a tensor in their order are the tensor, and some of them one part.
// CHECK-LABEL: glow_high.func @concat_of_slices(
// CHECK-NEXT:    %x = glow_high.get @x
// CHECK-NEXT:    glow_high.save %x, @y_2x6
// CHECK-NEXT:    %[[A:.*]] = glow_high.slice %x {starts = [0, 1], ends = [2, 4]} : tensor<2x3xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.concat %[[A]], %x {axis = 1} : tensor<2x9xf32>
// CHECK-NEXT:    glow_high.save %[[B]], @y_2x9
glow_high.func @concat_of_slices(@x, @y_2x6, @y_2x9) {
  %x = glow_high.get @x : tensor<2x6xf32>
  %0 = glow_high.slice %x {starts = [0, 0], ends = [2, 2]} : tensor<2x2xf32>
  %1 = glow_high.slice %x {starts = [0, 2], ends = [2, 3]} : tensor<2x1xf32>
  %2 = glow_high.slice %x {starts = [0, 3], ends = [2, 6]} : tensor<2x3xf32>
  %3 = glow_high.concat %0, %1, %2 {axis = 1} : tensor<2x6xf32>
  glow_high.save %3, @y_2x6
  %4 = glow_high.slice %x {starts = [0, 1], ends = [2, 3]} : tensor<2x2xf32>
  %5 = glow_high.slice %x {starts = [0, 3], ends = [2, 4]} : tensor<2x1xf32>
  %6 = glow_high.concat %4, %5, %3 {axis = 1} : tensor<2x9xf32>
  glow_high.save %6, @y_2x9
}

// Parts in another order, along another axis or with gaps stay.
// CHECK-LABEL: glow_high.func @apart(
// CHECK:         glow_high.concat %0, %1 {axis = 1} : tensor<2x4xf32>
// CHECK:         glow_high.concat %3, %0 {axis = 1} : tensor<2x4xf32>
glow_high.func @apart(@x, @y_2x4, @y_2x6) {
  %x = glow_high.get @x : tensor<2x6xf32>
  %0 = glow_high.slice %x {starts = [0, 0], ends = [2, 2]} : tensor<2x2xf32>
  %1 = glow_high.slice %x {starts = [0, 3], ends = [2, 5]} : tensor<2x2xf32>
  %2 = glow_high.concat %0, %1 {axis = 1} : tensor<2x4xf32>
  glow_high.save %2, @y_2x4
  %3 = glow_high.slice %x {starts = [0, 2], ends = [2, 4]} : tensor<2x2xf32>
  %4 = glow_high.concat %3, %0 {axis = 1} : tensor<2x4xf32>
  %5 = glow_high.concat %4, %3 {axis = 1} : tensor<2x6xf32>
  %6 = glow_high.neg %4 : tensor<2x4xf32>
  glow_high.save %5, @y_2x6
  glow_high.save %6, @y_2x4
}

// Parts of two tensors stay, though each begins where the other ends.
// CHECK-LABEL: glow_high.func @two_tensors(
// CHECK:         %[[A:.*]] = glow_high.slice %x {starts = [0, 0], ends = [2, 2]}
// CHECK-NEXT:    %[[B:.*]] = glow_high.slice %v {starts = [0, 2], ends = [2, 4]}
// CHECK-NEXT:    glow_high.concat %[[A]], %[[B]] {axis = 1} : tensor<2x4xf32>
glow_high.func @two_tensors(%x: tensor<2x6xf32>, %v: tensor<2x6xf32>) -> tensor<2x4xf32> {
  %0 = glow_high.slice %x {starts = [0, 0], ends = [2, 2]} : tensor<2x2xf32>
  %1 = glow_high.slice %v {starts = [0, 2], ends = [2, 4]} : tensor<2x2xf32>
  %2 = glow_high.concat %0, %1 {axis = 1} : tensor<2x4xf32>
  glow_high.return %2
}

// Concatenations along one axis are one, where nothing else reads the inner one; splats of one number are one.
// CHECK-LABEL: glow_high.func @nested(
// CHECK:         %[[A:.*]] = glow_high.concat %x, %v, %x, %v {axis = 1} : tensor<2x24xf32>
// CHECK-NEXT:    glow_high.save %[[A]], @y_2x24
// CHECK-NEXT:    %[[B:.*]] = glow_high.concat %x, %v {axis = 1} : tensor<2x12xf32>
// CHECK-NEXT:    glow_high.save %[[B]], @y_2x12
// CHECK-NEXT:    %[[S:.*]] = glow_high.splat {value = 1.0} : tensor<2x6xf32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.concat %[[B]], %[[S]], %x {axis = 1} : tensor<2x24xf32>
// CHECK-NEXT:    glow_high.save %[[C]], @y_2x24
glow_high.func @nested(@x, @v, @y_2x24, @y_2x12) {
  %x = glow_high.get @x : tensor<2x6xf32>
  %v = glow_high.get @v : tensor<2x6xf32>
  %0 = glow_high.concat %x, %v {axis = 1} : tensor<2x12xf32>
  %1 = glow_high.concat %0, %x {axis = -1} : tensor<2x18xf32>
  %2 = glow_high.concat %1, %v {axis = 1} : tensor<2x24xf32>
  glow_high.save %2, @y_2x24
  %3 = glow_high.concat %x, %v {axis = 1} : tensor<2x12xf32>
  glow_high.save %3, @y_2x12
  %4 = glow_high.splat {value = 1.0} : tensor<2x2xf32>
  %5 = glow_high.splat {value = 1.0} : tensor<2x4xf32>
  %6 = glow_high.concat %3, %4, %5, %x {axis = 1} : tensor<2x24xf32>
  glow_high.save %6, @y_2x24
}

// Borders of the nearest element, repetitions of repetitions, and a resize of axes of size one.
// CHECK-LABEL: glow_high.func @repeated(
// CHECK:         %[[A:.*]] = glow_high.pad %x {pads = [1, 3, 1, 1], mode = "edge"} : tensor<4x10xf32>
// CHECK-NEXT:    glow_high.save %[[A]], @y_4x10
// CHECK-NEXT:    %[[B:.*]] = glow_high.tile %x {repeats = [1, 4]} : tensor<2x24xf32>
// CHECK-NEXT:    glow_high.save %[[B]], @y_2x24
// CHECK-NEXT:    %u = glow_high.get @u
// CHECK-NEXT:    %[[C:.*]] = glow_high.resize %u {shape = [1, 1, 10], mode = "linear"} : tensor<1x1x10xf32>
// CHECK-NEXT:    %[[D:.*]] = glow_high.expand %[[C]] {shape = [1, 4, 10]} : tensor<1x4x10xf32>
// CHECK-NEXT:    glow_high.save %[[D]], @y_1x4x10
glow_high.func @repeated(@x, @u, @y_4x10, @y_2x24, @y_1x4x10) {
  %x = glow_high.get @x : tensor<2x6xf32>
  %0 = glow_high.pad %x {pads = [0, 2, 1, 0], mode = "edge"} : tensor<3x8xf32>
  %1 = glow_high.pad %0 {pads = [1, 1, 0, 1], mode = "edge"} : tensor<4x10xf32>
  glow_high.save %1, @y_4x10
  %2 = glow_high.tile %x {repeats = [1, 2]} : tensor<2x12xf32>
  %3 = glow_high.tile %2 {repeats = [1, 2]} : tensor<2x24xf32>
  glow_high.save %3, @y_2x24
  %u = glow_high.get @u : tensor<1x1x5xf32>
  %4 = glow_high.resize %u {shape = [1, 4, 10], mode = "linear"} : tensor<1x4x10xf32>
  glow_high.save %4, @y_1x4x10
}
