// Clips move above what only moves elements.

// RUN: glow-opt %s -p raise-clips --split-input-file | filecheck %s

// Above a tile and the border of zeros, and above a concatenation whose operands are computed for it.

// CHECK-LABEL: glow_high.func @raise(
// CHECK:         %[[T:.*]] = glow_high.tanh %x : tensor<2x3xf32>
// CHECK-NEXT:    %[[R:.*]] = glow_high.relu %[[T]] : tensor<2x3xf32>
// CHECK-NEXT:    %[[A:.*]] = glow_high.tile %[[R]] {repeats = [2, 1]} : tensor<4x3xf32>
// CHECK-NEXT:    %[[P:.*]] = glow_high.pad %[[A]] {pads = [1, 0, 1, 0]} : tensor<6x3xf32>
// CHECK-NEXT:    glow_high.save %[[P]], @y
// CHECK-DAG:     %[[L:.*]] = glow_high.clip %{{.*}}, none, %h : tensor<2x3xf32>
// CHECK-DAG:     %[[M:.*]] = glow_high.clip %{{.*}}, none, %h : tensor<2x3xf32>
// CHECK:         %[[C:.*]] = glow_high.concat
// CHECK-NEXT:    glow_high.save %[[C]], @z
glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @y : tensor<6x3xf32> {output}
glow_high.placeholder @z : tensor<4x3xf32> {output}
glow_high.func @raise(@x, @y, @z) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %h = glow_high.splat {value = 6.0} : tensor<f32>
  %1 = glow_high.tanh %x : tensor<2x3xf32>
  %2 = glow_high.tile %1 {repeats = [2, 1]} : tensor<4x3xf32>
  %3 = glow_high.pad %2 {pads = [1, 0, 1, 0]} : tensor<6x3xf32>
  %4 = glow_high.relu %3 : tensor<6x3xf32>
  glow_high.save %4, @y
  %5 = glow_high.exp %x : tensor<2x3xf32>
  %6 = glow_high.neg %x : tensor<2x3xf32>
  %7 = glow_high.concat %5, %6 {axis = 0} : tensor<4x3xf32>
  %8 = glow_high.clip %7, none, %h : tensor<4x3xf32>
  glow_high.save %8, @z
}

// -----

// Below slices, borders outside of the range, inputs that are concatenated, interpolation, and what is read twice.

// CHECK-LABEL: glow_high.func @stay(
// CHECK:         glow_high.slice
// CHECK-NEXT:    glow_high.relu
// CHECK:         glow_high.pad
// CHECK-NEXT:    glow_high.relu
// CHECK:         glow_high.concat
// CHECK-NEXT:    glow_high.relu
// CHECK:         glow_high.resize
// CHECK-NEXT:    glow_high.relu
// CHECK:         glow_high.expand
// CHECK-NEXT:    glow_high.relu
glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @a : tensor<1x3xf32> {output}
glow_high.placeholder @b : tensor<4x3xf32> {output}
glow_high.placeholder @c : tensor<2x2x3xf32> {output}
glow_high.func @stay(@x, @a, @b, @c) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %n = glow_high.splat {value = -1.0} : tensor<f32>
  %1 = glow_high.slice %x {starts = [0, 0], ends = [1, 3]} : tensor<1x3xf32>
  %2 = glow_high.relu %1 : tensor<1x3xf32>
  glow_high.save %2, @a
  %3 = glow_high.pad %x, %n {pads = [1, 0, 1, 0]} : tensor<4x3xf32>
  %4 = glow_high.relu %3 : tensor<4x3xf32>
  glow_high.save %4, @b
  %5 = glow_high.concat %x, %x {axis = 0} : tensor<4x3xf32>
  %6 = glow_high.relu %5 : tensor<4x3xf32>
  glow_high.save %6, @b
  %7 = glow_high.resize %x {shape = [4, 3], mode = "linear"} : tensor<4x3xf32>
  %8 = glow_high.relu %7 : tensor<4x3xf32>
  glow_high.save %8, @b
  %9 = glow_high.expand %x {shape = [2, 2, 3]} : tensor<2x2x3xf32>
  %10 = glow_high.relu %9 : tensor<2x2x3xf32>
  glow_high.save %9, @c
  glow_high.save %10, @c
}
