// Instructions derived from operators that move elements, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_low.func @movement(@in %x: memref<2x3x4xf32>, @in %v: memref<f32>, @out %y: memref<6x4xf32>, @out %t: memref<4x2x3xf32>, @out %e: memref<5x2x3x4xf32>, @out %c: memref<2x3x8xf32>, @out %s: memref<2x2x2xf32>, @out %p: memref<2x4x6xf32>) {
  glow_low.reshape @out %y, @in %x {shape = [6, 4]}
  glow_low.transpose @out %t, @in %x {permutation = [2, 0, 1]}
  glow_low.expand @out %e, @in %x {shape = [5, 2, 3, 4]}
  glow_low.tile @out %c, @in %x {repeats = [1, 1, 2]}
  glow_low.concat @out %c, @in %x, @in %x {axis = -1}
  glow_low.slice @out %s, @in %x {starts = [1, 0, 3], ends = [-1, 3, 0], steps = [-1, 2, -2]}
  glow_low.pad @out %p, @in %x, @in %v {pads = [0, 1, 0, 0, 0, 2]}
  glow_low.pad @out %p, @in %x {pads = [0, 1, 0, 0, 0, 2], mode = "edge"}
  glow_low.resize @out %p, @in %x {shape = [2, 4, 6], mode = "linear"}
}

glow_low.func @indices(@in %x: memref<2x3x4xf32>, @in %i: memref<5x2xi64>, @in %j: memref<2x1x4xi32>, @in %u: memref<2x1x4xf32>, @in %w: memref<5x4xf32>, @in %l: memref<3xi64>, @out %e: memref<5x2x3x4xf32>, @out %g: memref<5x4xf32>, @out %z: memref<2x3x4xf32>, @out %h: memref<2x1x4xf32>) {
  glow_low.gather @out %e, @in %x, @in %i
  glow_low.gather_nd @out %g, @in %x, @in %i
  glow_low.gather_elements @out %h, @in %x, @in %j {axis = 1}
  glow_low.scatter_elements @out %z, @in %x, @in %j, @in %u {axis = 1, reduction = "add"}
  glow_low.scatter_nd @out %z, @in %x, @in %i, @in %w
  glow_low.scatter_nd @out %z, @in %z, @in %i, @in %w {reduction = "min"}
  glow_low.reverse_sequence @out %z, @in %x, @in %l {time_axis = 2}
}
