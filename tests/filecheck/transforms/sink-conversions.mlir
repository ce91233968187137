// Elements are moved in the narrower of two types.

// RUN: glow-opt %s -p sink-conversions --split-input-file | filecheck %s

// To a wider type below, to a narrower one above, concatenations too.

// CHECK-LABEL: glow_high.func @move(
// CHECK:         %[[S:.*]] = glow_high.slice %h {starts = [0, 0], ends = [1, 3]} : tensor<1x3xf16>
// CHECK-NEXT:    %[[R:.*]] = glow_high.reshape %[[S]] {shape = [3]} : tensor<3xf16>
// CHECK-NEXT:    %[[W:.*]] = glow_high.cast %[[R]] {to = f32} : tensor<3xf32>
// CHECK-NEXT:    glow_high.save %[[W]], @y
// CHECK-NEXT:    %[[A:.*]] = glow_high.cast %x {to = f16} : tensor<2x3xf16>
// CHECK-NEXT:    %[[B:.*]] = glow_high.tile %[[A]] {repeats = [2, 1]} : tensor<4x3xf16>
// CHECK-NEXT:    glow_high.save %[[B]], @z
// CHECK-NEXT:    %[[C:.*]] = glow_high.concat %h, %h {axis = 0} : tensor<4x3xf16>
// CHECK-NEXT:    %[[D:.*]] = glow_high.cast %[[C]] {to = f32} : tensor<4x3xf32>
// CHECK-NEXT:    glow_high.save %[[D]], @w
glow_high.placeholder @h : tensor<2x3xf16> {input}
glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @y : tensor<3xf32> {output}
glow_high.placeholder @z : tensor<4x3xf16> {output}
glow_high.placeholder @w : tensor<4x3xf32> {output}
glow_high.func @move(@h, @x, @y, @z, @w) {
  %h = glow_high.get @h : tensor<2x3xf16>
  %x = glow_high.get @x : tensor<2x3xf32>
  %1 = glow_high.cast %h {to = f32} : tensor<2x3xf32>
  %2 = glow_high.slice %1 {starts = [0, 0], ends = [1, 3]} : tensor<1x3xf32>
  %3 = glow_high.reshape %2 {shape = [3]} : tensor<3xf32>
  glow_high.save %3, @y
  %4 = glow_high.tile %x {repeats = [2, 1]} : tensor<4x3xf32>
  %5 = glow_high.cast %4 {to = f16} : tensor<4x3xf16>
  glow_high.save %5, @z
  %6 = glow_high.cast %h {to = f32} : tensor<2x3xf32>
  %7 = glow_high.cast %h {to = f32} : tensor<2x3xf32>
  %8 = glow_high.concat %6, %7 {axis = 0} : tensor<4x3xf32>
  glow_high.save %8, @w
}

// -----

// Where more elements would be converted, or moved in a wider type, all stays.

// CHECK-LABEL: glow_high.func @stay(
// CHECK:         glow_high.cast %h {to = f32} : tensor<2x3xf32>
// CHECK-NEXT:    glow_high.tile
// CHECK:         glow_high.slice %x
// CHECK-NEXT:    glow_high.cast %{{.*}} {to = f16} : tensor<1x3xf16>
// CHECK:         glow_high.cast %x {to = f16} : tensor<2x3xf16>
// CHECK-NEXT:    glow_high.reshape
// CHECK:         glow_high.cast %x {to = i32} : tensor<2x3xi32>
// CHECK-NEXT:    glow_high.reshape
glow_high.placeholder @h : tensor<2x3xf16> {input}
glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @a : tensor<4x3xf32> {output}
glow_high.placeholder @b : tensor<1x3xf16> {output}
glow_high.placeholder @c : tensor<6xf16> {output}
glow_high.placeholder @d : tensor<6xi32> {output}
glow_high.func @stay(@h, @x, @a, @b, @c, @d) {
  %h = glow_high.get @h : tensor<2x3xf16>
  %x = glow_high.get @x : tensor<2x3xf32>
  %1 = glow_high.cast %h {to = f32} : tensor<2x3xf32>
  %2 = glow_high.tile %1 {repeats = [2, 1]} : tensor<4x3xf32>
  glow_high.save %2, @a
  %3 = glow_high.slice %x {starts = [0, 0], ends = [1, 3]} : tensor<1x3xf32>
  %4 = glow_high.cast %3 {to = f16} : tensor<1x3xf16>
  glow_high.save %4, @b
  %5 = glow_high.cast %x {to = f16} : tensor<2x3xf16>
  %6 = glow_high.reshape %5 {shape = [6]} : tensor<6xf16>
  glow_high.save %6, @c
  %7 = glow_high.cast %x {to = i32} : tensor<2x3xi32>
  %8 = glow_high.reshape %7 {shape = [6]} : tensor<6xi32>
  glow_high.save %8, @d
}
