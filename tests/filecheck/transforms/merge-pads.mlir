// Convolutions and pools pad their input themselves.

// RUN: glow-opt %s -p merge-pads --split-input-file | filecheck %s
// RUN: glow-opt %s -p merge-pads --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// The border is added to what the convolution pads already, in either layout, for all readers.

// CHECK-LABEL: glow_high.func @conv(
// CHECK-NOT:     glow_high.pad
// CHECK:         glow_high.conv %x, %f {strides = [2, 2], pads = [1, 3, 2, 4]} : tensor<1x6x8x2xf32>
// CHECK-NEXT:    glow_high.save
// CHECK-NEXT:    %[[P:.*]] = glow_high.avg_pool %x {kernel_shape = [2, 2], count_include_pad = true, pads = [0, 2, 1, 4]}
// CHECK-NEXT:    glow_high.save %[[P]], @z

// LOCATIONS: glow_high.conv {{.*}} loc(fused["border", "conv"])
// LOCATIONS: glow_high.avg_pool {{.*}} loc(fused["border", "pool"])
glow_high.placeholder @x : tensor<1x8x8x3xf32> {input}
glow_high.placeholder @f : tensor<2x1x1x3xf32> {input}
glow_high.placeholder @y : tensor<1x6x8x2xf32> {output}
glow_high.placeholder @z : tensor<1x8x13x3xf32> {output}
glow_high.func @conv(@x, @f, @y, @z) {
  %x = glow_high.get @x : tensor<1x8x8x3xf32>
  %f = glow_high.get @f : tensor<2x1x1x3xf32>
  %1 = glow_high.pad %x {pads = [0, 0, 2, 0, 0, 1, 4, 0]} : tensor<1x9x14x3xf32> loc("border")
  %2 = glow_high.conv %1, %f {strides = [2, 2], pads = [1, 1, 1, 0]} : tensor<1x6x8x2xf32> loc("conv")
  glow_high.save %2, @y
  %3 = glow_high.avg_pool %1 {kernel_shape = [2, 2]} : tensor<1x8x13x3xf32> loc("pool")
  glow_high.save %3, @z
}

// -----

// A max-pool never counts padding: it takes a border of -∞, or of 0 where nothing is negative.

// CHECK-LABEL: glow_high.func @max(
// CHECK:         glow_high.max_pool %x {kernel_shape = [2, 2], layout = "channels_first", pads = [1, 1, 0, 0]}
// CHECK:         %[[R:.*]] = glow_high.sigmoid %x
// CHECK-NEXT:    glow_high.max_pool %[[R]] {kernel_shape = [2, 2], layout = "channels_first", pads = [1, 1, 0, 0]}
glow_high.placeholder @x : tensor<1x3x8x8xf32> {input}
glow_high.placeholder @y : tensor<1x3x8x8xf32> {output}
glow_high.placeholder @z : tensor<1x3x8x8xf32> {output}
glow_high.func @max(@x, @y, @z) {
  %x = glow_high.get @x : tensor<1x3x8x8xf32>
  %i = glow_high.splat {value = -inf} : tensor<f32>
  %1 = glow_high.pad %x, %i {pads = [0, 0, 1, 1, 0, 0, 0, 0]} : tensor<1x3x9x9xf32>
  %2 = glow_high.max_pool %1 {kernel_shape = [2, 2], layout = "channels_first"} : tensor<1x3x8x8xf32>
  glow_high.save %2, @y
  %3 = glow_high.sigmoid %x : tensor<1x3x8x8xf32>
  %4 = glow_high.pad %3 {pads = [0, 0, 1, 1, 0, 0, 0, 0]} : tensor<1x3x9x9xf32>
  %5 = glow_high.max_pool %4 {kernel_shape = [2, 2], layout = "channels_first"} : tensor<1x3x8x8xf32>
  glow_high.save %5, @z
}

// -----

// Borders stay: of other numbers, over channels, of zeros before a max-pool of negative numbers, where windows are of
// padding alone, where a pool counts its own padding in another way, and where something else reads the pad.

// CHECK-LABEL: glow_high.func @stay(
// CHECK-COUNT-6: glow_high.pad
glow_high.placeholder @x : tensor<1x8x8x3xf32> {input}
glow_high.placeholder @f : tensor<2x1x1x3xf32> {input}
glow_high.placeholder @g : tensor<2x1x1x4xf32> {input}
glow_high.placeholder @a : tensor<1x10x8x2xf32> {output}
glow_high.placeholder @b : tensor<1x8x8x2xf32> {output}
glow_high.placeholder @c : tensor<1x9x7x3xf32> {output}
glow_high.placeholder @d : tensor<1x11x7x3xf32> {output}
glow_high.placeholder @e : tensor<1x11x9x3xf32> {output}
glow_high.placeholder @h : tensor<1x10x8x3xf32> {output}
glow_high.func @stay(@x, @f, @g, @a, @b, @c, @d, @e, @h) {
  %x = glow_high.get @x : tensor<1x8x8x3xf32>
  %f = glow_high.get @f : tensor<2x1x1x3xf32>
  %g = glow_high.get @g : tensor<2x1x1x4xf32>
  %n = glow_high.splat {value = 0.5} : tensor<f32>
  %i = glow_high.splat {value = -inf} : tensor<f32>
  %0 = glow_high.pad %x, %n {pads = [0, 1, 0, 0, 0, 1, 0, 0]} : tensor<1x10x8x3xf32>
  %1 = glow_high.conv %0, %f : tensor<1x10x8x2xf32>
  glow_high.save %1, @a
  %2 = glow_high.pad %x {pads = [0, 0, 0, 1, 0, 0, 0, 0]} : tensor<1x8x8x4xf32>
  %3 = glow_high.conv %2, %g : tensor<1x8x8x2xf32>
  glow_high.save %3, @b
  %4 = glow_high.pad %x {pads = [0, 1, 0, 0, 0, 1, 0, 0]} : tensor<1x10x8x3xf32>
  %5 = glow_high.max_pool %4 {kernel_shape = [2, 2]} : tensor<1x9x7x3xf32>
  glow_high.save %5, @c
  %6 = glow_high.pad %x, %i {pads = [0, 2, 0, 0, 0, 2, 0, 0]} : tensor<1x12x8x3xf32>
  %7 = glow_high.max_pool %6 {kernel_shape = [2, 2]} : tensor<1x11x7x3xf32>
  glow_high.save %7, @d
  %8 = glow_high.pad %x {pads = [0, 1, 0, 0, 0, 1, 0, 0]} : tensor<1x10x8x3xf32>
  %9 = glow_high.avg_pool %8 {kernel_shape = [2, 2], pads = [1, 1, 1, 1]} : tensor<1x11x9x3xf32>
  glow_high.save %9, @e
  %10 = glow_high.pad %x {pads = [0, 1, 0, 0, 0, 1, 0, 0]} : tensor<1x10x8x3xf32>
  %11 = glow_high.conv %10, %f : tensor<1x10x8x2xf32>
  glow_high.save %11, @a
  glow_high.save %10, @h
}

// -----

// Cutting off results takes padding away, as many strides of it, in either layout.

// CHECK-LABEL: glow_high.func @cut(
// CHECK-NOT:     glow_high.slice
// CHECK:         %[[A:.*]] = glow_high.conv %x, %f {strides = [2, 1], pads = [1, 2, 0, 1]} : tensor<1x4x10x2xf32>
// CHECK-NEXT:    glow_high.save %[[A]], @a
// CHECK-NEXT:    %[[B:.*]] = glow_high.conv %x, %g {pads = [0, 1, 0, 0], layout = "channels_first"} : tensor<1x2x8x3xf32>
// CHECK-NEXT:    glow_high.save %[[B]], @b

// LOCATIONS: glow_high.conv {{.*}} loc(fused["conv", "cut"])
glow_high.placeholder @x : tensor<1x8x8x3xf32> {input}
glow_high.placeholder @f : tensor<2x3x2x3xf32> {input}
glow_high.placeholder @g : tensor<2x8x1x2xf32> {input}
glow_high.placeholder @a : tensor<1x4x10x2xf32> {output}
glow_high.placeholder @b : tensor<1x2x8x3xf32> {output}
glow_high.func @cut(@x, @f, @g, @a, @b) {
  %x = glow_high.get @x : tensor<1x8x8x3xf32>
  %f = glow_high.get @f : tensor<2x3x2x3xf32>
  %g = glow_high.get @g : tensor<2x8x1x2xf32>
  %1 = glow_high.conv %x, %f {strides = [2, 1], pads = [3, 2, 2, 2]} : tensor<1x6x11x2xf32> loc("conv")
  %2 = glow_high.slice %1 {starts = [0, 1, 0, 0], ends = [1, 5, 10, 2]} : tensor<1x4x10x2xf32> loc("cut")
  glow_high.save %2, @a
  %3 = glow_high.conv %x, %g {pads = [0, 1, 0, 1], layout = "channels_first"} : tensor<1x2x8x4xf32>
  %4 = glow_high.slice %3 {starts = [0, 0, 0, 0], ends = [1, 2, 8, 3]} : tensor<1x2x8x3xf32>
  glow_high.save %4, @b
}

// -----

// Cuts stay that padding does not make, or that take channels, every second result, or what something else reads whole.

// CHECK-LABEL: glow_high.func @cuts_stay(
// CHECK-COUNT-4: glow_high.slice
glow_high.placeholder @x : tensor<1x8x3xf32> {input}
glow_high.placeholder @f : tensor<2x1x3xf32> {input}
glow_high.placeholder @a : tensor<1x7x2xf32> {output}
glow_high.placeholder @b : tensor<1x10x1xf32> {output}
glow_high.placeholder @c : tensor<1x5x2xf32> {output}
glow_high.placeholder @d : tensor<1x9x2xf32> {output}
glow_high.placeholder @e : tensor<1x10x2xf32> {output}
glow_high.func @cuts_stay(@x, @f, @a, @b, @c, @d, @e) {
  %x = glow_high.get @x : tensor<1x8x3xf32>
  %f = glow_high.get @f : tensor<2x1x3xf32>
  %1 = glow_high.conv %x, %f {pads = [1, 1]} : tensor<1x10x2xf32>
  %2 = glow_high.slice %1 {starts = [0, 1, 0], ends = [1, 8, 2]} : tensor<1x7x2xf32>
  glow_high.save %2, @a
  %3 = glow_high.conv %x, %f {pads = [1, 1]} : tensor<1x10x2xf32>
  %4 = glow_high.slice %3 {starts = [0, 0, 0], ends = [1, 10, 1]} : tensor<1x10x1xf32>
  glow_high.save %4, @b
  %5 = glow_high.conv %x, %f {pads = [1, 1]} : tensor<1x10x2xf32>
  %6 = glow_high.slice %5 {starts = [0, 0, 0], ends = [1, 10, 2], steps = [1, 2, 1]} : tensor<1x5x2xf32>
  glow_high.save %6, @c
  %7 = glow_high.conv %x, %f {pads = [1, 1]} : tensor<1x10x2xf32>
  glow_high.save %7, @e
  %8 = glow_high.slice %7 {starts = [0, 0, 0], ends = [1, 9, 2]} : tensor<1x9x2xf32>
  glow_high.save %8, @d
}

// -----

// The gradients of slices, whose sum is a concatenation: in any order, as pads or beside zeros, with a border that is left
// and with what is no part of it.

// CHECK-LABEL: glow_high.func @slices(
// CHECK-NEXT:    %[[C:.*]] = glow_high.concat %c, %b, %a {axis = 0} : tensor<4x2xf32>
// CHECK-NEXT:    %[[P:.*]] = glow_high.pad %[[C]] {pads = [1, 0, 0, 0]} : tensor<5x2xf32>
// CHECK-NEXT:    %[[S:.*]] = glow_high.add %d, %[[P]]
// CHECK-NEXT:    glow_high.return %[[S]]
glow_high.func @slices(%a: tensor<1x2xf32>, %b: tensor<2x2xf32>, %c: tensor<1x2xf32>, %d: tensor<5x2xf32>) -> tensor<5x2xf32> {
  %0 = glow_high.splat {value = 0.0} : tensor<4x2xf32>
  %1 = glow_high.concat %0, %a {axis = 0} : tensor<5x2xf32>
  %2 = glow_high.pad %c {pads = [1, 0, 3, 0]} : tensor<5x2xf32>
  %3 = glow_high.pad %b {pads = [2, 0, 1, 0]} : tensor<5x2xf32>
  %4 = glow_high.add %1, %2 : tensor<5x2xf32>
  %5 = glow_high.add %4, %d : tensor<5x2xf32>
  %6 = glow_high.add %5, %3 : tensor<5x2xf32>
  glow_high.return %6
}

// -----

// Parts that overlap, or lie apart, parts along different axes, and what another operator reads too stay sums.

// CHECK-LABEL: glow_high.func @apart(
// CHECK-NOT:     glow_high.concat
// CHECK-COUNT-3: glow_high.pad
// CHECK-COUNT-3: glow_high.add
glow_high.func @apart(%a: tensor<2x3xf32>, %b: tensor<1x3xf32>, %c: tensor<4x1xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %1 = glow_high.pad %a {pads = [0, 0, 2, 0]} : tensor<4x3xf32>
  %2 = glow_high.pad %b {pads = [1, 0, 2, 0]} : tensor<4x3xf32>
  %3 = glow_high.pad %c {pads = [0, 0, 0, 2]} : tensor<4x3xf32>
  %4 = glow_high.add %1, %2 : tensor<4x3xf32>
  %5 = glow_high.add %4, %3 : tensor<4x3xf32>
  %6 = glow_high.add %5, %5 : tensor<4x3xf32>
  glow_high.return %5, %6
}

// -----

// The sum of each element keeps its order: what is added before, or behind, stays there, and what is added between stays.

// CHECK-LABEL: glow_high.func @order(
// CHECK-NEXT:    %[[S1:.*]] = glow_high.add %c, %d
// CHECK-NEXT:    %[[C1:.*]] = glow_high.concat %a, %b {axis = 0}
// CHECK-NEXT:    %[[R1:.*]] = glow_high.add %[[S1]], %[[C1]]
// CHECK-NEXT:    %[[C2:.*]] = glow_high.concat %a, %b {axis = 0}
// CHECK-NEXT:    %[[S2:.*]] = glow_high.add %c, %[[C2]]
// CHECK-NEXT:    %[[R2:.*]] = glow_high.add %[[S2]], %d
// CHECK-NEXT:    %[[A:.*]] = glow_high.pad %a
// CHECK-NEXT:    %[[B:.*]] = glow_high.pad %b
// CHECK-NEXT:    %[[S3:.*]] = glow_high.add %[[A]], %c
// CHECK-NEXT:    %[[S4:.*]] = glow_high.add %[[S3]], %d
// CHECK-NEXT:    %[[R3:.*]] = glow_high.add %[[S4]], %[[B]]
// CHECK-NEXT:    glow_high.return %[[R1]], %[[R2]], %[[R3]]
glow_high.func @order(%a: tensor<1xf32>, %b: tensor<2xf32>, %c: tensor<3xf32>, %d: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %a1 = glow_high.pad %a {pads = [0, 2]} : tensor<3xf32>
  %b1 = glow_high.pad %b {pads = [1, 0]} : tensor<3xf32>
  %1 = glow_high.add %c, %d : tensor<3xf32>
  %2 = glow_high.add %1, %a1 : tensor<3xf32>
  %3 = glow_high.add %2, %b1 : tensor<3xf32>
  %a2 = glow_high.pad %a {pads = [0, 2]} : tensor<3xf32>
  %b2 = glow_high.pad %b {pads = [1, 0]} : tensor<3xf32>
  %4 = glow_high.add %a2, %b2 : tensor<3xf32>
  %5 = glow_high.add %4, %c : tensor<3xf32>
  %6 = glow_high.add %5, %d : tensor<3xf32>
  %a3 = glow_high.pad %a {pads = [0, 2]} : tensor<3xf32>
  %b3 = glow_high.pad %b {pads = [1, 0]} : tensor<3xf32>
  %7 = glow_high.add %a3, %c : tensor<3xf32>
  %8 = glow_high.add %7, %d : tensor<3xf32>
  %9 = glow_high.add %8, %b3 : tensor<3xf32>
  glow_high.return %3, %6, %9
}
