// Clips move below what chooses the largest or smallest elements, where they are no part of products for nothing.

// RUN: glow-opt %s -p 'assign-target{target=cortex-m4},sink-clips' --split-input-file | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},sink-clips' --split-input-file | filecheck %s --check-prefix=FREE

// CHECK-LABEL: glow_high.func @sink(
// CHECK:         %[[P:.*]] = glow_high.max_pool %x {kernel_shape = [2, 2], strides = [2, 2], pads = [1, 1, 1, 1]} : tensor<1x3x3x3xf32>
// CHECK-NEXT:    %[[R:.*]] = glow_high.relu %[[P]] : tensor<1x3x3x3xf32>
// CHECK-NEXT:    glow_high.save %[[R]], @y
// CHECK:         %[[M:.*]] = glow_high.reduce_min %x {axes = [1, 2]} : tensor<1x1x1x3xf32>
// CHECK:         %[[C:.*]] = glow_high.clip %[[M]], %{{.*}}, %{{.*}} : tensor<1x1x1x3xf32>
// CHECK-NEXT:    glow_high.save %[[C]], @z
// FREE-LABEL: glow_high.func @sink(
// FREE:         glow_high.relu %x
// FREE-NEXT:    glow_high.max_pool
// FREE:         glow_high.clip %x
// FREE-NEXT:    glow_high.reduce_min
glow_high.placeholder @x : tensor<1x4x4x3xf32> {input}
glow_high.placeholder @y : tensor<1x3x3x3xf32> {output}
glow_high.placeholder @z : tensor<1x1x1x3xf32> {output}
glow_high.func @sink(@x, @y, @z) {
  %x = glow_high.get @x : tensor<1x4x4x3xf32>
  %0 = glow_high.relu %x : tensor<1x4x4x3xf32>
  %1 = glow_high.max_pool %0 {kernel_shape = [2, 2], strides = [2, 2], pads = [1, 1, 1, 1]} : tensor<1x3x3x3xf32>
  glow_high.save %1, @y
  %low = glow_high.splat {value = -1.0} : tensor<f32>
  %high = glow_high.splat {value = 6.0} : tensor<1x4x4x3xf32>
  %2 = glow_high.clip %x, %low, %high : tensor<1x4x4x3xf32>
  %3 = glow_high.reduce_min %2 {axes = [1, 2]} : tensor<1x1x1x3xf32>
  glow_high.save %3, @z
}

// -----

// Above windows that only padding may be in, as many results, means, and what is read twice.

// CHECK-LABEL: glow_high.func @stay(
// CHECK:         glow_high.relu
// CHECK-NEXT:    glow_high.max_pool
// CHECK:         glow_high.relu
// CHECK-NEXT:    glow_high.max_pool
// CHECK:         glow_high.relu
// CHECK-NEXT:    glow_high.avg_pool
// CHECK:         glow_high.relu
// CHECK-NEXT:    glow_high.max_pool
// FREE-LABEL: glow_high.func @stay(
glow_high.placeholder @x : tensor<1x4x4x3xf32> {input}
glow_high.placeholder @a : tensor<1x3x3x3xf32> {output}
glow_high.placeholder @b : tensor<1x4x4x3xf32> {output}
glow_high.placeholder @c : tensor<1x2x2x3xf32> {output}
glow_high.placeholder @d : tensor<1x2x2x3xf32> {output}
glow_high.placeholder @e : tensor<1x4x4x3xf32> {output}
glow_high.func @stay(@x, @a, @b, @c, @d, @e) {
  %x = glow_high.get @x : tensor<1x4x4x3xf32>
  %0 = glow_high.relu %x : tensor<1x4x4x3xf32>
  %1 = glow_high.max_pool %0 {kernel_shape = [2, 2], strides = [3, 3], pads = [2, 2, 2, 2]} : tensor<1x3x3x3xf32>
  glow_high.save %1, @a
  %2 = glow_high.relu %x : tensor<1x4x4x3xf32>
  %3 = glow_high.max_pool %2 {kernel_shape = [3, 3], pads = [1, 1, 1, 1]} : tensor<1x4x4x3xf32>
  glow_high.save %3, @b
  %4 = glow_high.relu %x : tensor<1x4x4x3xf32>
  %5 = glow_high.avg_pool %4 {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x2x2x3xf32>
  glow_high.save %5, @c
  %6 = glow_high.relu %x : tensor<1x4x4x3xf32>
  %7 = glow_high.max_pool %6 {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x2x2x3xf32>
  glow_high.save %7, @d
  glow_high.save %6, @e
}
