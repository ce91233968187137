// Operators that the backend does not execute become simpler ones, at the same place of the model.

// RUN: glow-opt %s -p 'assign-target{target=avx2},lower' | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},lower,verify-lowered' | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},lower' --print-debuginfo | filecheck %s --check-prefix=LOCATIONS
// RUN: glow-opt %s -p 'assign-target{backend=interpreter},lower' | filecheck %s --check-prefix=INTERPRETER
// RUN: not glow-opt %s -p 'assign-target{backend=no-such-backend},lower' 2>&1 | filecheck %s --check-prefix=UNKNOWN

// CHECK-LABEL: glow_high.func @main(
// CHECK-NOT:     glow_high.batch_normalization
// CHECK:         glow_high.sqrt
// CHECK-NOT:     glow_high.batch_normalization
// CHECK:         %[[Y:.*]] = glow_high.add %{{.*}}, %{{.*}} : tensor<1x3x2xf32>
// CHECK-NEXT:    %[[Z:.*]] = glow_high.lrn %[[Y]]
// CHECK-NEXT:    %[[R:.*]] = glow_high.relu %[[Z]]
// CHECK-NEXT:    glow_high.return %[[Y]], %[[R]]

// LOCATIONS: glow_high.sqrt {{.*}} loc("norm")
// LOCATIONS: glow_high.add {{.*}} : tensor<1x3x2xf32> loc("norm")
// LOCATIONS: glow_high.lrn {{.*}} loc("response")
// LOCATIONS: glow_high.relu {{.*}} loc("relu")

// INTERPRETER: glow_high.batch_normalization
// INTERPRETER: glow_high.lrn
glow_high.func @main(%s: tensor<2xf32>, %x: tensor<1x3x2xf32>) -> (tensor<1x3x2xf32>, tensor<1x3x2xf32>) {
  %1 = glow_high.batch_normalization %x, %s, %s, %s, %s : tensor<1x3x2xf32> loc("norm")
  %2 = glow_high.lrn %1 {size = 3} : tensor<1x3x2xf32> loc("response")
  %3 = glow_high.relu %2 : tensor<1x3x2xf32> loc("relu")
  glow_high.return %1, %3
}

// A transposed convolution of stride 2 is a convolution for each rest of the outputs' places …

// CHECK-LABEL: glow_high.func @phases(
// CHECK:         %[[ZEROS:.*]] = glow_high.pad %{{.*}} : tensor<1x7x4xf32>
// CHECK:         %[[EVEN:.*]] = glow_high.slice {{.*}}steps = [1, 2, 1]{{.*}} : tensor<16x2x4xf32>
// CHECK:         %[[LEFT:.*]] = glow_high.slice %[[ZEROS]] {{.*}} : tensor<1x6x4xf32>
// CHECK:         glow_high.conv %[[LEFT]], %[[EVEN]] {{.*}} : tensor<1x5x16xf32>
// CHECK:         glow_high.conv {{.*}} : tensor<1x5x16xf32>
// CHECK-NOT:     glow_high.conv
// CHECK:         glow_high.concat {{.*}}{axis = 2} : tensor<1x5x2x16xf32>
// CHECK-NEXT:    glow_high.reshape {{.*}} : tensor<1x10x16xf32>
glow_high.func @phases(%x: tensor<1x5x4xf32>, %w: tensor<4x4x16xf32>) -> tensor<1x10x16xf32> {
  %1 = glow_high.conv_transpose %x, %w {pads = [1, 1], strides = [2]} : tensor<1x10x16xf32>
  glow_high.return %1
}

// … or, where channels are few, one convolution with a channel for each of them; what a padding that is no multiple of
// the stride leaves over is cut off …

// CHECK-LABEL: glow_high.func @joined(
// CHECK:         glow_high.conv %{{.*}} : tensor<1x6x6xf32>
// CHECK-NOT:     glow_high.conv
// CHECK:         %[[SPREAD:.*]] = glow_high.reshape %{{.*}} : tensor<1x12x3xf32>
// CHECK-NEXT:    glow_high.slice %[[SPREAD]] {starts = [0, 1, 0], ends = [1, 11, 3]} : tensor<1x10x3xf32>
glow_high.func @joined(%x: tensor<1x5x4xf32>, %w: tensor<4x4x3xf32>) -> tensor<1x10x3xf32> {
  %1 = glow_high.conv_transpose %x, %w {pads = [1, 1], strides = [2]} : tensor<1x10x3xf32>
  glow_high.return %1
}

// … and where the result is transposed anyway, while a depthwise one stays depthwise …

// CHECK-LABEL: glow_high.func @turned(
// CHECK:         glow_high.conv %{{.*}} : tensor<1x8x8x64xf32>
// CHECK-NOT:     glow_high.conv
// CHECK:         glow_high.return
glow_high.func @turned(%x: tensor<1x8x8x32xf32>, %w: tensor<32x2x2x16xf32>) -> tensor<1x16x16x16xf32> {
  %1 = glow_high.conv_transpose %x, %w {strides = [2, 2]} : tensor<1x16x16x16xf32>
  %2 = glow_high.transpose %1 {permutation = [0, 3, 1, 2]} : tensor<1x16x16x16xf32>
  glow_high.return %2
}

// CHECK-LABEL: glow_high.func @by_channel(
// CHECK-COUNT-4: glow_high.conv {{.*}}group = 4{{.*}} : tensor<1x8x8x4xf32>
glow_high.func @by_channel(%x: tensor<1x8x8x4xf32>, %w: tensor<4x2x2x1xf32>) -> tensor<1x16x16x4xf32> {
  %1 = glow_high.conv_transpose %x, %w {strides = [2, 2], group = 4} : tensor<1x16x16x4xf32>
  glow_high.return %1
}

// … and where the filter is shorter than the stride, zeros stand between its outputs.

// CHECK-LABEL: glow_high.func @sparse(
// CHECK-COUNT-2: glow_high.conv %{{.*}} : tensor<1x5x16xf32>
// CHECK-NOT:     glow_high.conv
// CHECK:         %[[FILTERS:.*]] = glow_high.reshape %{{.*}} : tensor<1x5x2x16xf32>
// CHECK-NEXT:    %[[ZEROS:.*]] = glow_high.pad %[[FILTERS]] {pads = [0, 0, 0, 0, 0, 0, 3, 0]} : tensor<1x5x5x16xf32>
// CHECK-NEXT:    %[[ALL:.*]] = glow_high.reshape %[[ZEROS]] {{.*}} : tensor<1x25x16xf32>
// CHECK-NEXT:    glow_high.slice %[[ALL]] {starts = [0, 1, 0], ends = [1, 22, 16]} : tensor<1x21x16xf32>
glow_high.func @sparse(%x: tensor<1x5x4xf32>, %w: tensor<4x2x16xf32>) -> tensor<1x21x16xf32> {
  %1 = glow_high.conv_transpose %x, %w {pads = [1, 0], strides = [5]} : tensor<1x21x16xf32>
  glow_high.return %1
}

// What has no elements becomes a splat, whatever its lowering would have done.

// CHECK-LABEL: glow_high.func @empty(
// CHECK-NEXT:    %[[NONE:.*]] = glow_high.splat {value = 0.0} : tensor<0x21x16xf32>
// CHECK-NEXT:    glow_high.return %[[NONE]]
glow_high.func @empty(%x: tensor<0x5x4xf32>, %w: tensor<4x2x16xf32>) -> tensor<0x21x16xf32> {
  %1 = glow_high.conv_transpose %x, %w {pads = [1, 0], strides = [5]} : tensor<0x21x16xf32>
  glow_high.return %1
}

// Rows are rounded for a product of integers: to bytes, or to high and low ones.

// CHECK-LABEL: glow_high.func @rounded(
// CHECK:         %[[SCALE:.*]] = glow_high.div %{{.*}}, %{{.*}} : tensor<2x3x1xf32>
// CHECK:         %[[VALUES:.*]] = glow_high.round %{{.*}} : tensor<2x3x16xf32>
// CHECK:         %[[SUMS:.*]] = glow_high.reduce_sum %{{.*}} : tensor<2x3xi32>
// CHECK:         %[[SCALES:.*]] = glow_high.reshape %[[SCALE]] {{.*}} : tensor<2x3xf32>
// CHECK:         %[[BYTES:.*]] = glow_high.reshape %{{.*}} : tensor<2x48xi8>
// CHECK-NEXT:    glow_high.blockwise_matmul_integer %[[BYTES]], none, %[[SCALES]], %[[SUMS]], %c, %s {bits = 4, block = 16} : tensor<2x5xf32>
// CHECK:         %[[HIGH:.*]] = glow_high.reshape %{{.*}} : tensor<2x48xi8>
// CHECK:         %[[LOW:.*]] = glow_high.reshape %{{.*}} : tensor<2x48xi8>
// CHECK-NEXT:    glow_high.blockwise_matmul_integer %[[HIGH]], %[[LOW]], %{{.*}}, %{{.*}}, %c, %s {bits = 4, block = 16} : tensor<2x5xf32>
glow_high.func @rounded(%x: tensor<2x48xf32>, %c: tensor<5x24xui8>, %s: tensor<5x3xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
  %y = glow_high.blockwise_matmul %x, %c, %s {bits = 4, block = 16, left_bits = 8} : tensor<2x5xf32>
  %z = glow_high.blockwise_matmul %x, %c, %s {bits = 4, block = 16, left_bits = 15} : tensor<2x5xf32>
  glow_high.return %y, %z
}

// UNKNOWN: glow-opt: error: no backend 'no-such-backend' (hint: there are {{.*}}cpu
