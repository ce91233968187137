// Sizes that are known at run time only: printed, parsed, and inferred from operands.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

// CHECK: glow_high.placeholder @x : tensor<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>> {input}
glow_high.placeholder @x : tensor<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>> {input}
// CHECK: glow_high.placeholder @z : tensor<?x?xf32, #glow.sizes<[batch * 4, batch + length + 1], batch = 1 to 64, length = 0 to 9>>
glow_high.placeholder @z : tensor<?x?xf32, #glow.sizes<[batch * 4, 1 + length + batch], length = 0 to 9, batch = 1 to 64>> {input}
glow_high.placeholder @w : tensor<4x8xf32> {input}
glow_high.placeholder @image : tensor<?x9x9x4xf32, #glow.sizes<[batch], batch = 1 to 64>> {input}
glow_high.placeholder @filter : tensor<8x3x3x4xf32> {input}
// Quotients have one form: what the number divides is outside of it, and what is divided twice is divided once.
// CHECK: glow_high.placeholder @q : tensor<?x?x?xf32, #glow.sizes<[(height + 1) floordiv 2, width * (height floordiv 2) * 3, (height + 3) floordiv 4], height = 1 to 64, width = 1 to 9>>
glow_high.placeholder @q : tensor<?x?x?xf32, #glow.sizes<[(height - 1) floordiv 2 + 1, height * 2 floordiv 4 * width * 3, ((height + 1) floordiv 2 + 1) floordiv 2], height = 1 to 64, width = 1 to 9>> {input}
// CHECK: glow_high.placeholder @known : tensor<?x3xf32, #glow.sizes<[height * 3 + (height + 1) floordiv 2 + 1], height = 1 to 64>>
glow_high.placeholder @known : tensor<?x3xf32, #glow.sizes<[(height * 7 + 3) floordiv 2 - height floordiv 65], height = 1 to 64>> {input}
glow_high.placeholder @picture : tensor<1x?x?x4xf32, #glow.sizes<[height, width], height = 1 to 64, width = 1 to 9>> {input}

glow_high.func @main(@x, @w, @image, @filter, @picture) {
  %x = glow_high.get @x : tensor<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %w = glow_high.get @w : tensor<4x8xf32>
  // CHECK: glow_high.matmul %x, %w : tensor<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %0 = glow_high.matmul %x, %w : tensor<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  // CHECK-NEXT: glow_high.add %0, %0 : tensor<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %1 = glow_high.add %0, %0 : tensor<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  // CHECK-NEXT: glow_high.transpose %1 {permutation = [1, 0]} : tensor<8x?xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %2 = glow_high.transpose %1 {permutation = [1, 0]} : tensor<8x?xf32, #glow.sizes<[batch], batch = 1 to 64>>
  // CHECK-NEXT: glow_high.concat %0, %1 {axis = 0} : tensor<?x8xf32, #glow.sizes<[batch * 2], batch = 1 to 64>>
  %3 = glow_high.concat %0, %1 {axis = 0} : tensor<?x8xf32, #glow.sizes<[batch * 2], batch = 1 to 64>>
  // CHECK-NEXT: glow_high.reduce_sum %3 {axes = [1], keepdims = false} : tensor<?xf32, #glow.sizes<[batch * 2], batch = 1 to 64>>
  %4 = glow_high.reduce_sum %3 {axes = [1], keepdims = false} : tensor<?xf32, #glow.sizes<[batch * 2], batch = 1 to 64>>
  // CHECK-NEXT: glow_high.softmax %0 : tensor<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %5 = glow_high.softmax %0 : tensor<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %image = glow_high.get @image : tensor<?x9x9x4xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %filter = glow_high.get @filter : tensor<8x3x3x4xf32>
  // CHECK: glow_high.conv %image, %filter : tensor<?x7x7x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %6 = glow_high.conv %image, %filter : tensor<?x7x7x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  // CHECK-NEXT: glow_high.max_pool %6 {kernel_shape = [7, 7]} : tensor<?x1x1x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %7 = glow_high.max_pool %6 {kernel_shape = [7, 7]} : tensor<?x1x1x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %picture = glow_high.get @picture : tensor<1x?x?x4xf32, #glow.sizes<[height, width], height = 1 to 64, width = 1 to 9>>
  // CHECK: glow_high.conv %picture, %filter {strides = [2, 1], pads = [1, 1, 1, 1]} : tensor<1x?x?x8xf32, #glow.sizes<[(height + 1) floordiv 2, width], height = 1 to 64, width = 1 to 9>>
  %8 = glow_high.conv %picture, %filter {strides = [2, 1], pads = [1, 1, 1, 1]} : tensor<1x?x?x8xf32, #glow.sizes<[(height + 1) floordiv 2, width], height = 1 to 64, width = 1 to 9>>
  // CHECK-NEXT: glow_high.max_pool %8 {kernel_shape = [2, 1], strides = [2, 1], ceil_mode = true} : tensor<1x?x?x8xf32, #glow.sizes<[(height + 3) floordiv 4, width], height = 1 to 64, width = 1 to 9>>
  %9 = glow_high.max_pool %8 {kernel_shape = [2, 1], strides = [2, 1], ceil_mode = true} : tensor<1x?x?x8xf32, #glow.sizes<[(height + 3) floordiv 4, width], height = 1 to 64, width = 1 to 9>>
  // CHECK-NEXT: glow_high.slice %9 {starts = [0, 0, 0, 0], ends = #glow.sizes<[1, (height + 3) floordiv 4, width, 8], height = 1 to 64, width = 1 to 9>, steps = [1, 1, 2, 1]} : tensor<1x?x?x8xf32, #glow.sizes<[(height + 3) floordiv 4, (width + 1) floordiv 2], height = 1 to 64, width = 1 to 9>>
  %10 = glow_high.slice %9 {starts = [0, 0, 0, 0], ends = #glow.sizes<[1, (height + 3) floordiv 4, width, 8], height = 1 to 64, width = 1 to 9>, steps = [1, 1, 2, 1]} : tensor<1x?x?x8xf32, #glow.sizes<[(height + 3) floordiv 4, (width + 1) floordiv 2], height = 1 to 64, width = 1 to 9>>
}
