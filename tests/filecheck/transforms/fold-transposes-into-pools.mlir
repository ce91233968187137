// A pool between transposes reads images as they are.

// RUN: glow-opt %s -p assign-target{target=avx2},fold-transposes-into-pools --split-input-file | filecheck %s
// RUN: glow-opt %s -p assign-target{target=avx2},fold-transposes-into-pools --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// CHECK-LABEL: glow_high.func @between(
// CHECK-NEXT:    %[[Y:.*]] = glow_high.max_pool %x {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], layout = "channels_first"} : tensor<1x8x32x32xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]

// LOCATIONS: glow_high.max_pool %x {{.*}} loc(fused["there", "pool", "back"])
glow_high.func @between(%x: tensor<1x8x64x64xf32>) -> tensor<1x8x32x32xf32> {
  %1 = glow_high.transpose %x {permutation = [0, 2, 3, 1]} : tensor<1x64x64x8xf32> loc("there")
  %2 = glow_high.max_pool %1 {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]} : tensor<1x32x32x8xf32> loc("pool")
  %3 = glow_high.transpose %2 {permutation = [0, 3, 1, 2]} : tensor<1x8x32x32xf32> loc("back")
  glow_high.return %3
}

// -----

// Along one axis, without a border, from 8 pixels on.

// CHECK-LABEL: glow_high.func @line(
// CHECK-NEXT:    glow_high.avg_pool %x {kernel_shape = [2], strides = [2], layout = "channels_first"} : tensor<1x5x8xf32>
// CHECK-NEXT:    glow_high.return
glow_high.func @line(%x: tensor<1x5x16xf32>) -> tensor<1x5x8xf32> {
  %1 = glow_high.transpose %x {permutation = [0, 2, 1]} : tensor<1x16x5xf32>
  %2 = glow_high.avg_pool %1 {kernel_shape = [2], strides = [2]} : tensor<1x8x5xf32>
  %3 = glow_high.transpose %2 {permutation = [0, 2, 1]} : tensor<1x5x8xf32>
  glow_high.return %3
}

// -----

// Rows that are too short, windows that are too far apart, and images that something else reads stay.

// CHECK-LABEL: glow_high.func @short(
// CHECK-COUNT-2: glow_high.transpose
glow_high.func @short(%x: tensor<1x8x31x31xf32>) -> tensor<1x8x31x31xf32> {
  %1 = glow_high.transpose %x {permutation = [0, 2, 3, 1]} : tensor<1x31x31x8xf32>
  %2 = glow_high.avg_pool %1 {kernel_shape = [3, 3], pads = [1, 1, 1, 1]} : tensor<1x31x31x8xf32>
  %3 = glow_high.transpose %2 {permutation = [0, 3, 1, 2]} : tensor<1x8x31x31xf32>
  glow_high.return %3
}

// CHECK-LABEL: glow_high.func @far(
// CHECK-COUNT-2: glow_high.transpose
glow_high.func @far(%x: tensor<1x8x96x96xf32>) -> tensor<1x8x32x32xf32> {
  %1 = glow_high.transpose %x {permutation = [0, 2, 3, 1]} : tensor<1x96x96x8xf32>
  %2 = glow_high.max_pool %1 {kernel_shape = [3, 3], strides = [3, 3]} : tensor<1x32x32x8xf32>
  %3 = glow_high.transpose %2 {permutation = [0, 3, 1, 2]} : tensor<1x8x32x32xf32>
  glow_high.return %3
}

// CHECK-LABEL: glow_high.func @read_twice(
// CHECK-COUNT-2: glow_high.transpose
glow_high.func @read_twice(%x: tensor<1x8x64x64xf32>) -> (tensor<1x8x32x32xf32>, tensor<1x32x32x8xf32>) {
  %1 = glow_high.transpose %x {permutation = [0, 2, 3, 1]} : tensor<1x64x64x8xf32>
  %2 = glow_high.max_pool %1 {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x32x32x8xf32>
  %3 = glow_high.transpose %2 {permutation = [0, 3, 1, 2]} : tensor<1x8x32x32xf32>
  glow_high.return %3, %2
}
