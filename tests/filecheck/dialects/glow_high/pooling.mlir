// Pooling, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

// CHECK-LABEL: glow_high.func @pools(
glow_high.func @pools(%image: tensor<1x9x9x4xf32>, %first: tensor<1x4x9x9xf32>, %bytes: tensor<1x9x9x4xui8>) {
  // CHECK-NEXT: %max_pool = glow_high.max_pool %image {kernel_shape = [2, 2]} : tensor<1x8x8x4xf32>
  %max_pool = glow_high.max_pool %image {kernel_shape = [2, 2]} : tensor<1x8x8x4xf32>
  // CHECK-NEXT: %max_pool_1 = glow_high.max_pool %image {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 2], ceil_mode = true} : tensor<1x5x4x4xf32>
  %max_pool_1 = glow_high.max_pool %image {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 2], ceil_mode = true} : tensor<1x5x4x4xf32>
  // CHECK-NEXT: %max_pool_2 = glow_high.max_pool %first {kernel_shape = [3, 3], layout = "channels_first"} : tensor<1x4x7x7xf32>
  %max_pool_2 = glow_high.max_pool %first {kernel_shape = [3, 3], layout = "channels_first"} : tensor<1x4x7x7xf32>
  // CHECK-NEXT: %max_pool_3 = glow_high.max_pool %bytes {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x4x4x4xui8>
  %max_pool_3 = glow_high.max_pool %bytes {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x4x4x4xui8>
  // CHECK-NEXT: %avg_pool = glow_high.avg_pool %image {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x4x4x4xf32>
  %avg_pool = glow_high.avg_pool %image {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x4x4x4xf32>
  // CHECK-NEXT: %avg_pool_1 = glow_high.avg_pool %image {kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = true} : tensor<1x9x9x4xf32>
  %avg_pool_1 = glow_high.avg_pool %image {kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = true} : tensor<1x9x9x4xf32>
  // CHECK-NEXT: %sum_pool = glow_high.sum_pool %bytes {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x4x4x4xi32>
  %sum_pool = glow_high.sum_pool %bytes {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x4x4x4xi32>
  // CHECK-NEXT: %lp_pool = glow_high.lp_pool %image {kernel_shape = [2, 2]} : tensor<1x8x8x4xf32>
  %lp_pool = glow_high.lp_pool %image {kernel_shape = [2, 2]} : tensor<1x8x8x4xf32>
  // CHECK-NEXT: %lp_pool_1 = glow_high.lp_pool %image {kernel_shape = [2, 2], p = 1} : tensor<1x8x8x4xf32>
  %lp_pool_1 = glow_high.lp_pool %image {kernel_shape = [2, 2], p = 1} : tensor<1x8x8x4xf32>
  // CHECK-NEXT: %max, %indices = glow_high.max_pool_with_indices %image {kernel_shape = [2, 2]} : tensor<1x8x8x4xf32>, tensor<1x8x8x4xi64>
  %max, %indices = glow_high.max_pool_with_indices %image {kernel_shape = [2, 2]} : tensor<1x8x8x4xf32>, tensor<1x8x8x4xi64>
  // CHECK-NEXT: %max_1, %indices_1 = glow_high.max_pool_with_indices %image {kernel_shape = [2, 2], column_major = true} : tensor<1x8x8x4xf32>, tensor<1x8x8x4xi64>
  %max_1, %indices_1 = glow_high.max_pool_with_indices %image {kernel_shape = [2, 2], column_major = true} : tensor<1x8x8x4xf32>, tensor<1x8x8x4xi64>
}
