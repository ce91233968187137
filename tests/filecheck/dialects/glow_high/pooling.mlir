// Pooling, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @pools(%image: tensor<1x9x9x4xf32>, %first: tensor<1x4x9x9xf32>, %bytes: tensor<1x9x9x4xui8>) {
  %max_pool = glow_high.max_pool %image {kernel_shape = [2, 2]} : tensor<1x8x8x4xf32>
  %max_pool_1 = glow_high.max_pool %image {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 2], ceil_mode = true} : tensor<1x5x4x4xf32>
  %max_pool_2 = glow_high.max_pool %first {kernel_shape = [3, 3], layout = "channels_first"} : tensor<1x4x7x7xf32>
  %max_pool_3 = glow_high.max_pool %bytes {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x4x4x4xui8>
  %avg_pool = glow_high.avg_pool %image {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x4x4x4xf32>
  %avg_pool_1 = glow_high.avg_pool %image {kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = true} : tensor<1x9x9x4xf32>
  %sum_pool = glow_high.sum_pool %bytes {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x4x4x4xi32>
  %lp_pool = glow_high.lp_pool %image {kernel_shape = [2, 2]} : tensor<1x8x8x4xf32>
  %lp_pool_1 = glow_high.lp_pool %image {kernel_shape = [2, 2], p = 1} : tensor<1x8x8x4xf32>
  %max, %indices = glow_high.max_pool_with_indices %image {kernel_shape = [2, 2]} : tensor<1x8x8x4xf32>, tensor<1x8x8x4xi64>
  %max_1, %indices_1 = glow_high.max_pool_with_indices %image {kernel_shape = [2, 2], column_major = true} : tensor<1x8x8x4xf32>, tensor<1x8x8x4xi64>
  %max_2, %indices_2 = glow_high.max_pool_with_indices %image {kernel_shape = [2, 2], by_channel = true} : tensor<1x8x8x4xf32>, tensor<1x8x8x4xi64>
}
