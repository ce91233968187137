// Operators that sample images between their elements, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @grid_sample(%x: tensor<2x5x6x3xf32>, %grid: tensor<2x7x8x2xf32>, %volume: tensor<1x2x3x4x1xi32>, %places: tensor<1x1x1x9x3xf64>) {
  %grid_sample = glow_high.grid_sample %x, %grid : tensor<2x7x8x3xf32>
  %grid_sample_1 = glow_high.grid_sample %x, %grid {mode = "cubic", padding = "reflection", align_corners = true} : tensor<2x7x8x3xf32>
  %grid_sample_2 = glow_high.grid_sample %volume, %places {mode = "nearest", padding = "border"} : tensor<1x1x1x9x1xi32>
}

glow_high.func @roi_align(%x: tensor<2x5x6x3xf32>, %rois: tensor<4x4xf32>, %images: tensor<4xi64>) {
  %roi_align = glow_high.roi_align %x, %rois, %images {output_shape = [7, 8]} : tensor<4x7x8x3xf32>
  %roi_align_1 = glow_high.roi_align %x, %rois, %images {output_shape = [1, 2], sampling_ratio = 2, spatial_scale = 0.25, half_pixel = true, mode = "max"} : tensor<4x1x2x3xf32>
}

glow_high.func @roi_pool(%x: tensor<2x5x6x3xf32>, %rois: tensor<4x5xf32>) {
  %roi_pool = glow_high.roi_pool %x, %rois {output_shape = [7, 8]} : tensor<4x7x8x3xf32>
  %roi_pool_1 = glow_high.roi_pool %x, %rois {output_shape = [1, 2], spatial_scale = 0.25} : tensor<4x1x2x3xf32>
}

glow_high.func @deform(%x: tensor<2x5x6x4xf32>, %filter: tensor<8x3x3x2xf32>, %offset: tensor<2x3x4x36xf32>, %bias: tensor<8xf32>, %mask: tensor<2x3x4x18xf32>) {
  %deform_conv = glow_high.deform_conv %x, %filter, %offset {group = 2, offset_group = 2} : tensor<2x3x4x8xf32>
  %deform_conv_1 = glow_high.deform_conv %x, %filter, %offset, none, %mask {group = 2, offset_group = 2} : tensor<2x3x4x8xf32>
  %deform_columns = glow_high.deform_columns %x, %offset {offset_group = 2, kernel_shape = [3, 3]} : tensor<2x3x4x9x4xf32>
  %deform_columns_1 = glow_high.deform_columns %x, %offset, %mask {kernel_shape = [3, 3], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], offset_group = 2} : tensor<2x3x4x9x4xf32>
}
