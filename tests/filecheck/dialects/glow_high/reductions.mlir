// Reductions, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @with_unit_axes(%x: tensor<2x5x6xf32>) {
  %reduce_sum = glow_high.reduce_sum %x {axes = [1, 2]} : tensor<2x1x1xf32>
  %reduce_mean = glow_high.reduce_mean %x {axes = [1, 2]} : tensor<2x1x1xf32>
  %reduce_prod = glow_high.reduce_prod %x {axes = [1, 2]} : tensor<2x1x1xf32>
  %reduce_max = glow_high.reduce_max %x {axes = [1, 2]} : tensor<2x1x1xf32>
  %reduce_min = glow_high.reduce_min %x {axes = [1, 2]} : tensor<2x1x1xf32>
  %reduce_l1 = glow_high.reduce_l1 %x {axes = [1, 2]} : tensor<2x1x1xf32>
  %reduce_l2 = glow_high.reduce_l2 %x {axes = [1, 2]} : tensor<2x1x1xf32>
  %reduce_sum_square = glow_high.reduce_sum_square %x {axes = [1, 2]} : tensor<2x1x1xf32>
  %reduce_log_sum = glow_high.reduce_log_sum %x {axes = [1, 2]} : tensor<2x1x1xf32>
  %reduce_log_sum_exp = glow_high.reduce_log_sum_exp %x {axes = [1, 2]} : tensor<2x1x1xf32>
}

glow_high.func @without_axes(%x: tensor<2x5x6xf32>) {
  %reduce_sum = glow_high.reduce_sum %x {axes = [-1], keepdims = false} : tensor<2x5xf32>
  %reduce_mean = glow_high.reduce_mean %x {axes = [-1], keepdims = false} : tensor<2x5xf32>
  %reduce_prod = glow_high.reduce_prod %x {axes = [-1], keepdims = false} : tensor<2x5xf32>
  %reduce_max = glow_high.reduce_max %x {axes = [-1], keepdims = false} : tensor<2x5xf32>
  %reduce_min = glow_high.reduce_min %x {axes = [-1], keepdims = false} : tensor<2x5xf32>
  %reduce_l1 = glow_high.reduce_l1 %x {axes = [-1], keepdims = false} : tensor<2x5xf32>
  %reduce_l2 = glow_high.reduce_l2 %x {axes = [-1], keepdims = false} : tensor<2x5xf32>
  %reduce_sum_square = glow_high.reduce_sum_square %x {axes = [-1], keepdims = false} : tensor<2x5xf32>
  %reduce_log_sum = glow_high.reduce_log_sum %x {axes = [-1], keepdims = false} : tensor<2x5xf32>
  %reduce_log_sum_exp = glow_high.reduce_log_sum_exp %x {axes = [-1], keepdims = false} : tensor<2x5xf32>
}

glow_high.func @other_types(%i: tensor<2x5x6xi32>, %p: tensor<2x5x6xi1>) {
  %reduce_sum = glow_high.reduce_sum %i {axes = [0, 1, 2], keepdims = false} : tensor<i32>
  %reduce_l1 = glow_high.reduce_l1 %i {axes = []} : tensor<2x5x6xi32>
  %reduce_max = glow_high.reduce_max %p {axes = [0]} : tensor<1x5x6xi1>
}

glow_high.func @positions(%x: tensor<2x5x6xf32>) {
  %arg_max = glow_high.arg_max %x {axis = 1} : tensor<2x1x6xi64>
  %arg_max_1 = glow_high.arg_max %x {axis = -1, keepdims = false, select_last_index = true} : tensor<2x5xi64>
  %arg_min = glow_high.arg_min %x {axis = 0} : tensor<1x5x6xi64>
}

glow_high.func @running(%x: tensor<2x5x6xf32>, %i: tensor<2x5x6xi32>) {
  %cum_sum = glow_high.cum_sum %x {axis = 1} : tensor<2x5x6xf32>
  %cum_sum_1 = glow_high.cum_sum %i {axis = -1, exclusive = true, reverse = true} : tensor<2x5x6xi32>
  %cum_prod = glow_high.cum_prod %x {axis = 0} : tensor<2x5x6xf32>
}

glow_high.func @largest(%x: tensor<2x5x6xf32>) {
  %top_k_values, %top_k_indices = glow_high.top_k %x {k = 3} : tensor<2x5x3xf32>, tensor<2x5x3xi64>
  %top_k_2_values, %top_k_2_indices = glow_high.top_k %x {k = 2, axis = 1, largest = false, sorted = false} : tensor<2x2x6xf32>, tensor<2x2x6xi64>
}
