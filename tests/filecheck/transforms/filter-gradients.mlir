// Gradients of filters as convolutions of transposed images.

// RUN: glow-opt %s -p 'assign-target{target=avx2},simplify-convolutions' | filecheck %s

// The gradient of a filter of few channels is a product for each of its taps; where channels are many, it stays.

// CHECK-LABEL: glow_high.func @gradient(
// CHECK:         %[[PADDED:.*]] = glow_high.pad %x {pads = [0, 1, 0, 0, 1, 0]} : tensor<2x66x3xf32>
// CHECK-COUNT-3: glow_high.matmul {{.*}} {transpose_left = true} : tensor<3x5xf32>
// CHECK:         glow_high.concat
// CHECK-NOT:     glow_high.conv
// CHECK-LABEL: glow_high.func @channels(
// CHECK:         glow_high.conv

// That of a filter of one tap is one product for any channels, of every second pixel where it moves by two.

// CHECK-LABEL: glow_high.func @one_tap(
// CHECK:         %[[PIXELS:.*]] = glow_high.slice %x {{.*}} : tensor<2x5x17xf32>
// CHECK:         glow_high.matmul {{.*}} {transpose_left = true} : tensor<17x5xf32>
// CHECK-NOT:     glow_high.conv
// CHECK:         glow_high.return
glow_high.func @gradient(%x: tensor<2x64x3xf32>, %g: tensor<2x64x5xf32>) -> tensor<3x3x5xf32> {
  %1 = glow_high.transpose %x {permutation = [2, 1, 0]} : tensor<3x64x2xf32>
  %2 = glow_high.transpose %g {permutation = [2, 1, 0]} : tensor<5x64x2xf32>
  %3 = glow_high.conv %1, %2 {pads = [1, 1]} : tensor<3x3x5xf32>
  glow_high.return %3
}
glow_high.func @channels(%x: tensor<2x64x17xf32>, %g: tensor<2x64x5xf32>) -> tensor<17x3x5xf32> {
  %1 = glow_high.transpose %x {permutation = [2, 1, 0]} : tensor<17x64x2xf32>
  %2 = glow_high.transpose %g {permutation = [2, 1, 0]} : tensor<5x64x2xf32>
  %3 = glow_high.conv %1, %2 {pads = [1, 1]} : tensor<17x3x5xf32>
  glow_high.return %3
}
glow_high.func @one_tap(%x: tensor<2x9x17xf32>, %g: tensor<2x5x5xf32>) -> tensor<17x1x5xf32> {
  %1 = glow_high.transpose %x {permutation = [2, 1, 0]} : tensor<17x9x2xf32>
  %2 = glow_high.transpose %g {permutation = [2, 1, 0]} : tensor<5x5x2xf32>
  %3 = glow_high.conv %1, %2 {dilations = [2]} : tensor<17x1x5xf32>
  glow_high.return %3
}
