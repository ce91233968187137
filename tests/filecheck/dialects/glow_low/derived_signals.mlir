// Instructions that are derived from operators on signals and between the elements of images, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_low.func @sampling(@in %x: memref<2x5x6x3xf32>, @in %grid: memref<2x7x8x2xf32>) {
  %sampled = glow_low.alloc : memref<2x7x8x3xf32>
  glow_low.grid_sample @out %sampled, @in %x, @in %grid {mode = "nearest"}
}

glow_low.func @fourier(@in %x: memref<2x10x1xf32>) {
  %frequencies = glow_low.alloc : memref<2x6x2xf32>
  glow_low.dft @out %frequencies, @in %x {axis = 1, length = 10, onesided = true}
}

glow_low.func @regions(@in %x: memref<2x5x6x3xf32>, @in %rois: memref<4x4xf32>, @in %images: memref<4xi64>) {
  %cells = glow_low.alloc : memref<4x7x8x3xf32>
  glow_low.roi_align @out %cells, @in %x, @in %rois, @in %images {output_shape = [7, 8]}
}

glow_low.func @cells(@in %x: memref<2x5x6x3xf32>, @in %rois: memref<4x5xf32>) {
  %cells = glow_low.alloc : memref<4x7x8x3xf32>
  glow_low.roi_pool @out %cells, @in %x, @in %rois {output_shape = [7, 8]}
}

glow_low.func @deform(@in %x: memref<2x5x6x4xf32>, @in %filter: memref<8x3x3x4xf32>, @in %offset: memref<2x3x4x18xf32>, @in %bias: memref<8xf32>, @in %mask: memref<2x3x4x9xf32>) {
  %convolved = glow_low.alloc : memref<2x3x4x8xf32>
  %columns = glow_low.alloc : memref<2x3x4x9x4xf32>
  glow_low.deform_conv @out %convolved, @in %x, @in %filter, @in %offset, @in %bias, @in %mask
  glow_low.deform_conv @out %convolved, @in %x, @in %filter, @in %offset
  glow_low.deform_columns @out %columns, @in %x, @in %offset, @in %mask {kernel_shape = [3, 3]}
}

glow_low.func @pooling(@in %x: memref<2x5x6x3xf32>) {
  %values = glow_low.alloc : memref<2x4x5x3xf32>
  %indices = glow_low.alloc : memref<2x4x5x3xi64>
  glow_low.max_pool_with_indices @out %values, @out %indices, @in %x {kernel_shape = [2, 2]}
}

glow_low.func @linear_attention(@in %q: memref<2x5x8xf32>, @in %k: memref<2x5x4xf32>, @in %v: memref<2x5x6xf32>, @in %b: memref<2x5x1xf32>) {
  %attended = glow_low.alloc : memref<2x5x12xf32>
  %state = glow_low.alloc : memref<2x2x2x3xf32>
  glow_low.linear_attention @out %attended, @out %state, @in %q, @in %k, @in %v {q_num_heads = 4, kv_num_heads = 2, update_rule = "linear"}
  glow_low.linear_attention @out %attended, @out %state, @in %q, @in %k, @in %v, @in none, @in none, @in %b {q_num_heads = 4, kv_num_heads = 2, update_rule = "delta"}
}

glow_low.func @windows_to_images(@in %x: memref<2x18x28xf32>) {
  %image = glow_low.alloc : memref<2x3x6x8xf32>
  glow_low.col2im @out %image, @in %x {image_shape = [6, 8], block_shape = [3, 2]}
}

glow_low.func @ngrams(@in %x: memref<3x12xi64>, @in %w: memref<9xf32>, @in %one: memref<2x2xi64>, @in %two: memref<4x3xi64>) {
  %counts = glow_low.alloc : memref<3x9xf32>
  glow_low.tf_idf_vectorizer @out %counts, @in %x, @in %w, @in %one, @in %two {size = 9}
}

glow_low.func @trees(@in %x: memref<8x3xf32>, @in %nodes: memref<5x4xi32>, @in %roots: memref<2xi32>, @in %leaves: memref<7x1xf32>, @in %ranges: memref<3x2xi32>, @in %t: memref<6xf32>, @in %tests: memref<4x7xui16>, @in %complete: memref<4x1x8xf32>) {
  %a = glow_low.alloc : memref<8x1xf32>
  glow_low.tree_ensemble @out %a, @in %x, @in %nodes, @in none, @in %roots, @in %leaves {size = 1}
  %b = glow_low.alloc : memref<8x1xf32>
  glow_low.binned_tree_ensemble @out %b, @in %x, @in %ranges, @in %t, @in %tests, @in none, @in %complete {relations = [3], counts = [3], size = 1}
}

glow_low.func @embedding(@in %t: memref<9x64xui8>, @in %i: memref<14xi64>, @in %l: memref<4xi32>, @in %s: memref<9xf32>) {
  %sums = glow_low.alloc : memref<4x64xf32>
  glow_low.sparse_lengths_sum @out %sums, @in %t, @in %i, @in %l, @in none, @in %s, @in %s
}
