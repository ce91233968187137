// Instructions that are derived from operators on signals and between the elements of images, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

// CHECK-LABEL: glow_low.func @sampling(
glow_low.func @sampling(@in %x: memref<2x5x6x3xf32>, @in %grid: memref<2x7x8x2xf32>) {
  %sampled = glow_low.alloc : memref<2x7x8x3xf32>
  // CHECK: glow_low.grid_sample @out %sampled, @in %x, @in %grid {mode = "nearest"}
  glow_low.grid_sample @out %sampled, @in %x, @in %grid {mode = "nearest"}
}

// CHECK-LABEL: glow_low.func @fourier(
glow_low.func @fourier(@in %x: memref<2x10x1xf32>) {
  %frequencies = glow_low.alloc : memref<2x6x2xf32>
  // CHECK: glow_low.dft @out %frequencies, @in %x {axis = 1, length = 10, onesided = true}
  glow_low.dft @out %frequencies, @in %x {axis = 1, length = 10, onesided = true}
}
