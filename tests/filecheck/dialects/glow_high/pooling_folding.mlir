// A pool of whose indices nothing reads one is a plain pool; others stay.

// RUN: glow-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: glow_high.func @unread(
// CHECK-NEXT:    %[[Y:.*]] = glow_high.max_pool %x {kernel_shape = [2, 2], strides = [2, 2], ceil_mode = true} : tensor<1x3x3x4xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]
glow_high.func @unread(%x: tensor<1x5x5x4xf32>) -> tensor<1x3x3x4xf32> {
  %y, %places = glow_high.max_pool_with_indices %x {kernel_shape = [2, 2], strides = [2, 2], ceil_mode = true, by_channel = true} : tensor<1x3x3x4xf32>, tensor<1x3x3x4xi64>
  glow_high.return %y
}

// CHECK-LABEL: glow_high.func @read(
// CHECK-NEXT:    %{{.*}}, %[[PLACES:.*]] = glow_high.max_pool_with_indices
glow_high.func @read(%x: tensor<1x4x4x4xf32>) -> tensor<1x3x3x4xi64> {
  %y, %places = glow_high.max_pool_with_indices %x {kernel_shape = [2, 2]} : tensor<1x3x3x4xf32>, tensor<1x3x3x4xi64>
  glow_high.return %places
}
