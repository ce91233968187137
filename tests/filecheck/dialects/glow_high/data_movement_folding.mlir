// Simplifications of operators that move elements.

// RUN: glow-opt %s -p canonicalize | filecheck %s

// A reshape to the same shape is gone.
// CHECK-LABEL: glow_high.func @reshape_to_same(
glow_high.func @reshape_to_same(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: %0 = glow_high.relu %x : tensor<2x3x4xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.reshape %x {shape = [2, 3, 4]} : tensor<2x3x4xf32>
  %1 = glow_high.relu %0 : tensor<2x3x4xf32>
  glow_high.return %1
}

// Of several reshapes the last counts.
// CHECK-LABEL: glow_high.func @reshape_of_reshape(
glow_high.func @reshape_of_reshape(%x: tensor<2x3x4xf32>) -> tensor<4x6xf32> {
  // CHECK-NEXT: %0 = glow_high.reshape %x {shape = [4, 6]} : tensor<4x6xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.reshape %x {shape = [6, 4]} : tensor<6x4xf32>
  %1 = glow_high.reshape %0 {shape = [24]} : tensor<24xf32>
  %2 = glow_high.reshape %1 {shape = [4, 6]} : tensor<4x6xf32>
  glow_high.return %2
}

// A reshape there and back is gone.
// CHECK-LABEL: glow_high.func @reshape_and_back(
glow_high.func @reshape_and_back(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: glow_high.return %x
  %0 = glow_high.reshape %x {shape = [6, 4]} : tensor<6x4xf32>
  %1 = glow_high.reshape %0 {shape = [2, 3, 4]} : tensor<2x3x4xf32>
  glow_high.return %1
}

// A reshape to another shape stays.
// CHECK-LABEL: glow_high.func @reshape_stays(
glow_high.func @reshape_stays(%x: tensor<2x3x4xf32>) -> tensor<4x3x2xf32> {
  // CHECK-NEXT: %0 = glow_high.reshape %x {shape = [4, 3, 2]} : tensor<4x3x2xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.reshape %x {shape = [4, 3, 2]} : tensor<4x3x2xf32>
  glow_high.return %0
}

// A transpose that keeps the order is gone.
// CHECK-LABEL: glow_high.func @transpose_to_same(
glow_high.func @transpose_to_same(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: glow_high.return %x
  %0 = glow_high.transpose %x {permutation = [0, 1, 2]} : tensor<2x3x4xf32>
  glow_high.return %0
}

// A transpose there and back is gone.
// CHECK-LABEL: glow_high.func @transpose_and_back(
glow_high.func @transpose_and_back(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: glow_high.return %x
  %0 = glow_high.transpose %x {permutation = [1, 2, 0]} : tensor<3x4x2xf32>
  %1 = glow_high.transpose %0 {permutation = [2, 0, 1]} : tensor<2x3x4xf32>
  glow_high.return %1
}

// Two transposes are one.
// CHECK-LABEL: glow_high.func @transpose_of_transpose(
glow_high.func @transpose_of_transpose(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  // CHECK-NEXT: %0 = glow_high.transpose %x {permutation = [2, 0, 1]} : tensor<4x2x3xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.transpose %x {permutation = [1, 2, 0]} : tensor<3x4x2xf32>
  %1 = glow_high.transpose %0 {permutation = [1, 2, 0]} : tensor<4x2x3xf32>
  glow_high.return %1
}

// A transpose that moves only axes of size one is a reshape.
// CHECK-LABEL: glow_high.func @transpose_of_unit_axes(
glow_high.func @transpose_of_unit_axes(%u: tensor<1x1x7x5xf32>) -> tensor<1x7x5x1xf32> {
  // CHECK-NEXT: %0 = glow_high.reshape %u {shape = [1, 7, 5, 1]} : tensor<1x7x5x1xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.transpose %u {permutation = [0, 2, 3, 1]} : tensor<1x7x5x1xf32>
  glow_high.return %0
}

// A transpose that swaps longer axes stays.
// CHECK-LABEL: glow_high.func @transpose_stays(
glow_high.func @transpose_stays(%u: tensor<1x1x7x5xf32>) -> tensor<1x1x5x7xf32> {
  // CHECK-NEXT: %0 = glow_high.transpose %u {permutation = [0, 1, 3, 2]} : tensor<1x1x5x7xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.transpose %u {permutation = [0, 1, 3, 2]} : tensor<1x1x5x7xf32>
  glow_high.return %0
}

// A concat of one is gone.
// CHECK-LABEL: glow_high.func @concat_of_one(
glow_high.func @concat_of_one(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: glow_high.return %x
  %0 = glow_high.concat %x {axis = 1} : tensor<2x3x4xf32>
  glow_high.return %0
}

// Operands without elements add nothing to a concat.
// CHECK-LABEL: glow_high.func @concat_of_empty(
glow_high.func @concat_of_empty(%x: tensor<2x3x4xf32>, %n: tensor<2x0x4xf32>) -> tensor<2x6x4xf32> {
  // CHECK-NEXT: %0 = glow_high.concat %x, %x {axis = 1} : tensor<2x6x4xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.concat %x, %n, %x {axis = 1} : tensor<2x6x4xf32>
  glow_high.return %0
}

// A concat of two stays.
// CHECK-LABEL: glow_high.func @concat_stays(
glow_high.func @concat_stays(%x: tensor<2x3x4xf32>) -> tensor<2x6x4xf32> {
  // CHECK-NEXT: %0 = glow_high.concat %x, %x {axis = 1} : tensor<2x6x4xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.concat %x, %x {axis = 1} : tensor<2x6x4xf32>
  glow_high.return %0
}

// A slice of everything is gone.
// CHECK-LABEL: glow_high.func @slice_of_all(
glow_high.func @slice_of_all(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: glow_high.return %x
  %0 = glow_high.slice %x {starts = [0, 0, 0], ends = [2, 3, 4], steps = [1, 1, 1]} : tensor<2x3x4xf32>
  glow_high.return %0
}

// A slice backwards stays.
// CHECK-LABEL: glow_high.func @slice_backwards(
glow_high.func @slice_backwards(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: %0 = glow_high.slice %x {starts = [0, 2, 0], ends = [2, -1, 4], steps = [1, -1, 1]} : tensor<2x3x4xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.slice %x {starts = [0, 2, 0], ends = [2, -1, 4], steps = [1, -1, 1]} : tensor<2x3x4xf32>
  glow_high.return %0
}

// A slice of a slice is one slice.
// CHECK-LABEL: glow_high.func @slice_of_slice(
glow_high.func @slice_of_slice(%x: tensor<2x3x4xf32>) -> tensor<1x2x2xf32> {
  // CHECK-NEXT: %0 = glow_high.slice %x {starts = [1, 2, 3], ends = [2, -1, 0], steps = [1, -2, -2]} : tensor<1x2x2xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.slice %x {starts = [0, 2, 1], ends = [2, -1, 4], steps = [1, -1, 1]} : tensor<2x3x3xf32>
  %1 = glow_high.slice %0 {starts = [1, 0, 2], ends = [2, 3, -1], steps = [1, 2, -2]} : tensor<1x2x2xf32>
  glow_high.return %1
}

// Slices that turn around twice are gone.
// CHECK-LABEL: glow_high.func @slice_and_back(
glow_high.func @slice_and_back(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: glow_high.return %x
  %0 = glow_high.slice %x {starts = [1, 2, 3], ends = [-1, -1, -1], steps = [-1, -1, -1]} : tensor<2x3x4xf32>
  %1 = glow_high.slice %0 {starts = [1, 2, 3], ends = [-1, -1, -1], steps = [-1, -1, -1]} : tensor<2x3x4xf32>
  glow_high.return %1
}

// A pad without a border is gone.
// CHECK-LABEL: glow_high.func @pad_of_nothing(
glow_high.func @pad_of_nothing(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: glow_high.return %x
  %0 = glow_high.pad %x {pads = [0, 0, 0, 0, 0, 0], mode = "edge"} : tensor<2x3x4xf32>
  glow_high.return %0
}

// Two borders of zeros are one.
// CHECK-LABEL: glow_high.func @pad_of_pad(
glow_high.func @pad_of_pad(%x: tensor<2x3x4xf32>) -> tensor<3x7x7xf32> {
  // CHECK-NEXT: %0 = glow_high.pad %x {pads = [1, 1, 0, 0, 3, 3]} : tensor<3x7x7xf32>
  // CHECK-NEXT: glow_high.return %0
  %z = glow_high.splat {value = 0.0} : tensor<f32>
  %0 = glow_high.pad %x, %z {pads = [1, 0, 0, 0, 2, 0]} : tensor<3x5x4xf32>
  %1 = glow_high.pad %0 {pads = [0, 1, 0, 0, 1, 3]} : tensor<3x7x7xf32>
  glow_high.return %1
}

// Two borders of different numbers stay.
// CHECK-LABEL: glow_high.func @pad_of_another_pad(
glow_high.func @pad_of_another_pad(%x: tensor<2x3x4xf32>) -> tensor<3x7x7xf32> {
  // CHECK-NEXT: %one = glow_high.splat {value = 1.0} : tensor<f32>
  // CHECK-NEXT: %0 = glow_high.pad %x, %one {pads = [1, 0, 0, 0, 2, 0]} : tensor<3x5x4xf32>
  // CHECK-NEXT: %1 = glow_high.pad %0 {pads = [0, 1, 0, 0, 1, 3]} : tensor<3x7x7xf32>
  // CHECK-NEXT: glow_high.return %1
  %one = glow_high.splat {value = 1.0} : tensor<f32>
  %0 = glow_high.pad %x, %one {pads = [1, 0, 0, 0, 2, 0]} : tensor<3x5x4xf32>
  %1 = glow_high.pad %0 {pads = [0, 1, 0, 0, 1, 3]} : tensor<3x7x7xf32>
  glow_high.return %1
}

// Two mirrored borders stay.
// CHECK-LABEL: glow_high.func @pad_of_reflection(
glow_high.func @pad_of_reflection(%x: tensor<2x3x4xf32>) -> tensor<2x5x4xf32> {
  // CHECK-NEXT: %0 = glow_high.pad %x {pads = [0, 1, 0, 0, 0, 0], mode = "reflect"} : tensor<2x4x4xf32>
  // CHECK-NEXT: %1 = glow_high.pad %0 {pads = [0, 1, 0, 0, 0, 0], mode = "reflect"} : tensor<2x5x4xf32>
  // CHECK-NEXT: glow_high.return %1
  %0 = glow_high.pad %x {pads = [0, 1, 0, 0, 0, 0], mode = "reflect"} : tensor<2x4x4xf32>
  %1 = glow_high.pad %0 {pads = [0, 1, 0, 0, 0, 0], mode = "reflect"} : tensor<2x5x4xf32>
  glow_high.return %1
}

// An expand to the same shape is gone.
// CHECK-LABEL: glow_high.func @expand_to_same(
glow_high.func @expand_to_same(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: glow_high.return %x
  %0 = glow_high.expand %x {shape = [2, 3, 4]} : tensor<2x3x4xf32>
  glow_high.return %0
}

// Of two expands the last counts.
// CHECK-LABEL: glow_high.func @expand_of_expand(
glow_high.func @expand_of_expand(%c: tensor<3x1xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: %0 = glow_high.expand %c {shape = [2, 3, 4]} : tensor<2x3x4xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.expand %c {shape = [3, 4]} : tensor<3x4xf32>
  %1 = glow_high.expand %0 {shape = [2, 3, 4]} : tensor<2x3x4xf32>
  glow_high.return %1
}

// One copy is no tile.
// CHECK-LABEL: glow_high.func @tile_of_one(
glow_high.func @tile_of_one(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: glow_high.return %x
  %0 = glow_high.tile %x {repeats = [1, 1, 1]} : tensor<2x3x4xf32>
  glow_high.return %0
}

// A tile along axes of size one is an expand.
// CHECK-LABEL: glow_high.func @tile_of_unit_axes(
glow_high.func @tile_of_unit_axes(%c: tensor<3x1xf32>) -> tensor<3x4xf32> {
  // CHECK-NEXT: %0 = glow_high.expand %c {shape = [3, 4]} : tensor<3x4xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.tile %c {repeats = [1, 4]} : tensor<3x4xf32>
  glow_high.return %0
}

// A tile along longer axes stays.
// CHECK-LABEL: glow_high.func @tile_stays(
glow_high.func @tile_stays(%c: tensor<3x1xf32>) -> tensor<6x4xf32> {
  // CHECK-NEXT: %0 = glow_high.tile %c {repeats = [2, 4]} : tensor<6x4xf32>
  // CHECK-NEXT: glow_high.return %0
  %0 = glow_high.tile %c {repeats = [2, 4]} : tensor<6x4xf32>
  glow_high.return %0
}

// Equal elements stay equal wherever they move.
// CHECK-LABEL: glow_high.func @movement_of_splat(
glow_high.func @movement_of_splat() -> tensor<24xf32> {
  // CHECK-NEXT: %0 = glow_high.splat {value = 0.5} : tensor<24xf32>
  // CHECK-NEXT: glow_high.return %0
  %s = glow_high.splat {value = 0.5} : tensor<2x3xf32>
  %0 = glow_high.transpose %s {permutation = [1, 0]} : tensor<3x2xf32>
  %1 = glow_high.slice %0 {starts = [0, 1], ends = [3, 2]} : tensor<3x1xf32>
  %2 = glow_high.expand %1 {shape = [3, 4]} : tensor<3x4xf32>
  %3 = glow_high.tile %2 {repeats = [2, 1]} : tensor<6x4xf32>
  %4 = glow_high.reshape %3 {shape = [24]} : tensor<24xf32>
  glow_high.return %4
}
