// Large windows that overlap are folded along one axis after the other.

// RUN: glow-opt %s -p assign-target{target=avx2},split-windows --split-input-file | filecheck %s
// RUN: glow-opt %s -p assign-target{target=avx2},split-windows --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// Rows are folded in place, and vectors of windows along a row read a padded copy.

// CHECK-LABEL: glow_high.func @largest(
// CHECK-NEXT:    %[[IMAGE:.*]] = glow_high.reshape %x {shape = [3, 32, 64]} : tensor<3x32x64xf32>
// CHECK-NEXT:    %[[ROWS:.*]] = glow_high.max_pool %[[IMAGE]] {kernel_shape = [5], strides = [1], pads = [2, 2], dilations = [1]} : tensor<3x32x64xf32>
// CHECK:         %[[NONE:.*]] = glow_high.splat {value = -inf} : tensor<f32>
// CHECK-NEXT:    %[[PADDED:.*]] = glow_high.pad %{{.*}}, %[[NONE]] {pads = [0, 2, 0, 0, 2, 0]} : tensor<96x68x1xf32>
// CHECK-NEXT:    %[[LINES:.*]] = glow_high.reshape %[[PADDED]] {shape = [1, 96, 68]} : tensor<1x96x68xf32>
// CHECK-NEXT:    %[[LARGEST:.*]] = glow_high.max_pool %[[LINES]] {kernel_shape = [5], layout = "channels_first", strides = [1], pads = [0, 0], dilations = [1]} : tensor<1x96x64xf32>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.reshape %[[LARGEST]] {shape = [1, 3, 32, 64]} : tensor<1x3x32x64xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]

// LOCATIONS-COUNT-2: glow_high.max_pool {{.*}} loc("pool")
glow_high.func @largest(%x: tensor<1x3x32x64xf32>) -> tensor<1x3x32x64xf32> {
  %1 = glow_high.max_pool %x {kernel_shape = [5, 5], pads = [2, 2, 2, 2], layout = "channels_first"} : tensor<1x3x32x64xf32> loc("pool")
  glow_high.return %1
}

// -----

// Channels are a part of rows where they are few: neighbouring pixels are as far apart as there are channels.

// CHECK-LABEL: glow_high.func @channels(
// CHECK:         glow_high.sum_pool %{{.*}} {kernel_shape = [7], strides = [1], pads = [0, 0], dilations = [1]} : tensor<1x26x64xf32>
// CHECK:         glow_high.sum_pool %{{.*}} {kernel_shape = [7], layout = "channels_first", strides = [1], pads = [0, 0], dilations = [2]} : tensor<1x26x52xf32>
// CHECK:         %[[COUNT:.*]] = glow_high.splat {value = 49.0}
// CHECK:         glow_high.div %{{.*}}, %[[COUNT]] : tensor<1x26x26x2xf32>
glow_high.func @channels(%x: tensor<1x32x32x2xf32>) -> tensor<1x26x26x2xf32> {
  %1 = glow_high.avg_pool %x {kernel_shape = [7, 7]} : tensor<1x26x26x2xf32>
  glow_high.return %1
}

// -----

// Small windows, windows that do not overlap, and windows along one axis stay.

// CHECK-LABEL: glow_high.func @small(
// CHECK-NEXT:    glow_high.avg_pool
// CHECK-NEXT:    glow_high.max_pool
// CHECK-NEXT:    glow_high.max_pool
// CHECK-NEXT:    glow_high.return
glow_high.func @small(%x: tensor<1x3x32x32xf32>, %y: tensor<1x30x30x1xf32>, %z: tensor<1x3x64xf32>) -> (tensor<1x3x30x30xf32>, tensor<1x6x6x1xf32>, tensor<1x3x34xf32>) {
  %1 = glow_high.avg_pool %x {kernel_shape = [3, 3], layout = "channels_first"} : tensor<1x3x30x30xf32>
  %2 = glow_high.max_pool %y {kernel_shape = [5, 5], strides = [5, 5]} : tensor<1x6x6x1xf32>
  %3 = glow_high.max_pool %z {kernel_shape = [31], layout = "channels_first"} : tensor<1x3x34xf32>
  glow_high.return %1, %2, %3
}
