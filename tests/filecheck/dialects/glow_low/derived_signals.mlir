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

// CHECK-LABEL: glow_low.func @regions(
glow_low.func @regions(@in %x: memref<2x5x6x3xf32>, @in %rois: memref<4x4xf32>, @in %images: memref<4xi64>) {
  %cells = glow_low.alloc : memref<4x7x8x3xf32>
  // CHECK: glow_low.roi_align @out %cells, @in %x, @in %rois, @in %images {output_shape = [7, 8]}
  glow_low.roi_align @out %cells, @in %x, @in %rois, @in %images {output_shape = [7, 8]}
}

// CHECK-LABEL: glow_low.func @deform(
glow_low.func @deform(@in %x: memref<2x5x6x4xf32>, @in %filter: memref<8x3x3x4xf32>, @in %offset: memref<2x3x4x18xf32>, @in %bias: memref<8xf32>, @in %mask: memref<2x3x4x9xf32>) {
  %convolved = glow_low.alloc : memref<2x3x4x8xf32>
  %columns = glow_low.alloc : memref<2x3x4x9x4xf32>
  // CHECK: glow_low.deform_conv @out %convolved, @in %x, @in %filter, @in %offset, @in %bias, @in %mask
  glow_low.deform_conv @out %convolved, @in %x, @in %filter, @in %offset, @in %bias, @in %mask
  // CHECK: glow_low.deform_conv @out %convolved, @in %x, @in %filter, @in %offset
  glow_low.deform_conv @out %convolved, @in %x, @in %filter, @in %offset
  // CHECK: glow_low.deform_columns @out %columns, @in %x, @in %offset, @in %mask {kernel_shape = [3, 3]}
  glow_low.deform_columns @out %columns, @in %x, @in %offset, @in %mask {kernel_shape = [3, 3]}
}

// CHECK-LABEL: glow_low.func @pooling(
glow_low.func @pooling(@in %x: memref<2x5x6x3xf32>) {
  %values = glow_low.alloc : memref<2x4x5x3xf32>
  %indices = glow_low.alloc : memref<2x4x5x3xi64>
  // CHECK: glow_low.max_pool_with_indices @out %values, @out %indices, @in %x {kernel_shape = [2, 2]}
  glow_low.max_pool_with_indices @out %values, @out %indices, @in %x {kernel_shape = [2, 2]}
}
