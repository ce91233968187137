// Instructions derived from operators that move elements, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

glow_high.placeholder @x : tensor<2x3x4xf32> {input}
glow_high.placeholder @v : tensor<f32> {input}
glow_high.placeholder @i : tensor<5x2xi64> {input}
glow_high.placeholder @j : tensor<2x1x4xi32> {input}
glow_high.placeholder @u : tensor<2x1x4xf32> {input}
glow_high.placeholder @w : tensor<5x4xf32> {input}
glow_high.placeholder @l : tensor<3xi64> {input}
glow_high.placeholder @y : tensor<6x4xf32> {output}
glow_high.placeholder @t : tensor<4x2x3xf32> {output}
glow_high.placeholder @e : tensor<5x2x3x4xf32> {output}
glow_high.placeholder @c : tensor<2x3x8xf32> {output}
glow_high.placeholder @s : tensor<2x2x2xf32> {output}
glow_high.placeholder @p : tensor<2x4x6xf32> {output}
glow_high.placeholder @g : tensor<5x4xf32> {output}
glow_high.placeholder @z : tensor<2x3x4xf32> {output}
glow_high.placeholder @h : tensor<2x1x4xf32> {output}

// CHECK-LABEL: glow_low.func @movement(@x, @v, @y, @t, @e, @c, @s, @p)
glow_low.func @movement(@x, @v, @y, @t, @e, @c, @s, @p) {
  // CHECK-NEXT: %x = glow_low.weight @x : memref<2x3x4xf32>
  %x = glow_low.weight @x : memref<2x3x4xf32>
  // CHECK-NEXT: %v = glow_low.weight @v : memref<f32>
  %v = glow_low.weight @v : memref<f32>
  // CHECK-NEXT: %y = glow_low.weight @y {mutable} : memref<6x4xf32>
  %y = glow_low.weight @y {mutable} : memref<6x4xf32>
  // CHECK-NEXT: %t = glow_low.weight @t {mutable} : memref<4x2x3xf32>
  %t = glow_low.weight @t {mutable} : memref<4x2x3xf32>
  // CHECK-NEXT: %e = glow_low.weight @e {mutable} : memref<5x2x3x4xf32>
  %e = glow_low.weight @e {mutable} : memref<5x2x3x4xf32>
  // CHECK-NEXT: %c = glow_low.weight @c {mutable} : memref<2x3x8xf32>
  %c = glow_low.weight @c {mutable} : memref<2x3x8xf32>
  // CHECK-NEXT: %s = glow_low.weight @s {mutable} : memref<2x2x2xf32>
  %s = glow_low.weight @s {mutable} : memref<2x2x2xf32>
  // CHECK-NEXT: %p = glow_low.weight @p {mutable} : memref<2x4x6xf32>
  %p = glow_low.weight @p {mutable} : memref<2x4x6xf32>
  // CHECK-NEXT: glow_low.reshape @out %y, @in %x {shape = [6, 4]}
  glow_low.reshape @out %y, @in %x {shape = [6, 4]}
  // CHECK-NEXT: glow_low.transpose @out %t, @in %x {permutation = [2, 0, 1]}
  glow_low.transpose @out %t, @in %x {permutation = [2, 0, 1]}
  // CHECK-NEXT: glow_low.expand @out %e, @in %x {shape = [5, 2, 3, 4]}
  glow_low.expand @out %e, @in %x {shape = [5, 2, 3, 4]}
  // CHECK-NEXT: glow_low.tile @out %c, @in %x {repeats = [1, 1, 2]}
  glow_low.tile @out %c, @in %x {repeats = [1, 1, 2]}
  // CHECK-NEXT: glow_low.concat @out %c, @in %x, @in %x {axis = -1}
  glow_low.concat @out %c, @in %x, @in %x {axis = -1}
  // CHECK-NEXT: glow_low.slice @out %s, @in %x {starts = [1, 0, 3], ends = [-1, 3, 0], steps = [-1, 2, -2]}
  glow_low.slice @out %s, @in %x {starts = [1, 0, 3], ends = [-1, 3, 0], steps = [-1, 2, -2]}
  // CHECK-NEXT: glow_low.pad @out %p, @in %x, @in %v {pads = [0, 1, 0, 0, 0, 2]}
  glow_low.pad @out %p, @in %x, @in %v {pads = [0, 1, 0, 0, 0, 2]}
  // CHECK-NEXT: glow_low.pad @out %p, @in %x {pads = [0, 1, 0, 0, 0, 2], mode = "edge"}
  glow_low.pad @out %p, @in %x {pads = [0, 1, 0, 0, 0, 2], mode = "edge"}
  // CHECK-NEXT: glow_low.resize @out %p, @in %x {shape = [2, 4, 6], mode = "linear"}
  glow_low.resize @out %p, @in %x {shape = [2, 4, 6], mode = "linear"}
}

// CHECK-LABEL: glow_low.func @indices(@x, @i, @j, @u, @w, @l, @e, @g, @z, @h)
glow_low.func @indices(@x, @i, @j, @u, @w, @l, @e, @g, @z, @h) {
  // CHECK-NEXT: %x = glow_low.weight @x : memref<2x3x4xf32>
  %x = glow_low.weight @x : memref<2x3x4xf32>
  // CHECK-NEXT: %i = glow_low.weight @i : memref<5x2xi64>
  %i = glow_low.weight @i : memref<5x2xi64>
  // CHECK-NEXT: %j = glow_low.weight @j : memref<2x1x4xi32>
  %j = glow_low.weight @j : memref<2x1x4xi32>
  // CHECK-NEXT: %u = glow_low.weight @u : memref<2x1x4xf32>
  %u = glow_low.weight @u : memref<2x1x4xf32>
  // CHECK-NEXT: %w = glow_low.weight @w : memref<5x4xf32>
  %w = glow_low.weight @w : memref<5x4xf32>
  // CHECK-NEXT: %l = glow_low.weight @l : memref<3xi64>
  %l = glow_low.weight @l : memref<3xi64>
  // CHECK-NEXT: %e = glow_low.weight @e {mutable} : memref<5x2x3x4xf32>
  %e = glow_low.weight @e {mutable} : memref<5x2x3x4xf32>
  // CHECK-NEXT: %g = glow_low.weight @g {mutable} : memref<5x4xf32>
  %g = glow_low.weight @g {mutable} : memref<5x4xf32>
  // CHECK-NEXT: %z = glow_low.weight @z {mutable} : memref<2x3x4xf32>
  %z = glow_low.weight @z {mutable} : memref<2x3x4xf32>
  // CHECK-NEXT: %h = glow_low.weight @h {mutable} : memref<2x1x4xf32>
  %h = glow_low.weight @h {mutable} : memref<2x1x4xf32>
  // CHECK-NEXT: glow_low.gather @out %e, @in %x, @in %i
  glow_low.gather @out %e, @in %x, @in %i
  // CHECK-NEXT: glow_low.gather_nd @out %g, @in %x, @in %i
  glow_low.gather_nd @out %g, @in %x, @in %i
  // CHECK-NEXT: glow_low.gather_elements @out %h, @in %x, @in %j {axis = 1}
  glow_low.gather_elements @out %h, @in %x, @in %j {axis = 1}
  // CHECK-NEXT: glow_low.scatter_elements @out %z, @in %x, @in %j, @in %u {axis = 1, reduction = "add"}
  glow_low.scatter_elements @out %z, @in %x, @in %j, @in %u {axis = 1, reduction = "add"}
  // CHECK-NEXT: glow_low.scatter_nd @out %z, @in %x, @in %i, @in %w
  glow_low.scatter_nd @out %z, @in %x, @in %i, @in %w
  // CHECK-NEXT: glow_low.scatter_nd @out %z, @in %z, @in %i, @in %w {reduction = "min"}
  glow_low.scatter_nd @out %z, @in %z, @in %i, @in %w {reduction = "min"}
  // CHECK-NEXT: glow_low.reverse_sequence @out %z, @in %x, @in %l {time_axis = 2}
  glow_low.reverse_sequence @out %z, @in %x, @in %l {time_axis = 2}
}
