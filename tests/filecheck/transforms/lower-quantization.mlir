// Products of codes are products of the integers that store them, and corrections for zero points.

// RUN: glow-opt %s -p lower-quantization,fold-constants,canonicalize | filecheck %s

// The border is one of zero points, and what these add to the sums is in the bias: 7 times the sum of each filter.

// CHECK:         glow_high.constant @[[B:.*]] : tensor<8xi32> {value = dense<-252> : tensor<8xi32>}
// CHECK-LABEL: glow_high.func @conv(
// CHECK:         %[[I:.*]] = glow_high.storage_cast %x {to = ui8}
// CHECK:         %[[Z:.*]] = glow_high.splat {value = 7 : ui8}
// CHECK:         %[[P:.*]] = glow_high.pad %[[I]], %[[Z]] {pads = [0, 1, 1, 0, 0, 1, 1, 0]} : tensor<1x8x8x4xui8>
// CHECK:         %[[L:.*]] = glow_high.get @[[B]]
// CHECK:         %[[S:.*]] = glow_high.conv %[[P]], %{{.*}}, %[[L]] : tensor<1x6x6x8xi32>
// CHECK-NEXT:    glow_high.return %[[S]]
glow_high.constant @w : tensor<8x3x3x4xi8> {value = dense<1> : tensor<8x3x3x4xi8>}
glow_high.func @conv(%x: tensor<1x6x6x4x!quant.uniform<u8:f32, 0.5:7>>) -> tensor<1x6x6x8xi32> {
  %w = glow_high.get @w : tensor<8x3x3x4xi8>
  %y = glow_high.conv %x, %w {pads = [1, 1, 1, 1]} : tensor<1x6x6x8xi32>
  glow_high.return %y
}

// Without a zero point, padding stays padding.

// CHECK-LABEL: glow_high.func @symmetric(
// CHECK:         %[[I:.*]] = glow_high.storage_cast %x {to = ui8}
// CHECK-NEXT:    %[[S:.*]] = glow_high.conv %[[I]], %{{.*}} {pads = [1, 1, 1, 1]} : tensor<1x6x6x8xi32>
// CHECK-NEXT:    glow_high.return %[[S]]
glow_high.func @symmetric(%x: tensor<1x6x6x4x!quant.uniform<u8:f32, 0.5>>) -> tensor<1x6x6x8xi32> {
  %w = glow_high.get @w : tensor<8x3x3x4xi8>
  %y = glow_high.conv %x, %w {pads = [1, 1, 1, 1]} : tensor<1x6x6x8xi32>
  glow_high.return %y
}

// A fully connected layer is a matrix product.

// CHECK-LABEL: glow_high.func @fully_connected(
// CHECK:         %[[S:.*]] = glow_high.matmul %{{.*}}, %{{.*}}, %b : tensor<2x4xi32>
// CHECK:         glow_high.sub %[[S]], %{{.*}} : tensor<2x4xi32>
glow_high.constant @v : tensor<3x4xi8> {value = dense<1> : tensor<3x4xi8>}
glow_high.func @fully_connected(%x: tensor<2x3x!quant.uniform<u8:f32, 0.5:7>>, %b: tensor<4xi32>) -> tensor<2x4xi32> {
  %v = glow_high.get @v : tensor<3x4xi8>
  %y = glow_high.fully_connected %x, %v, %b : tensor<2x4xi32>
  glow_high.return %y
}

// A zero point of the right operand takes 16 bits.

// CHECK-LABEL: glow_high.func @matmul(
// CHECK:         %[[B:.*]] = glow_high.sub %{{.*}}, %{{.*}} : tensor<3x4xi16>
// CHECK-NEXT:    %[[A:.*]] = glow_high.cast %{{.*}} {to = i16} : tensor<2x3xi16>
// CHECK:         glow_high.matmul %[[A]], %[[B]] : tensor<2x4xi32>
glow_high.func @matmul(%x: tensor<2x3x!quant.uniform<u8:f32, 0.5>>, %w: tensor<3x4x!quant.uniform<u8:f32, 0.5:128>>) -> tensor<2x4xi32> {
  %y = glow_high.matmul %x, %w : tensor<2x4xi32>
  glow_high.return %y
}

// Splats in weights become constants, which kernels read packed.

// CHECK-LABEL: glow_high.func @splats(
// CHECK-DAG:     %[[C:.*]] = glow_high.get @{{.*}} : tensor<1x16xui8>
// CHECK-DAG:     %[[S:.*]] = glow_high.get @{{.*}} : tensor<1x1xf32>
// CHECK:         glow_high.blockwise_matmul %x, %[[C]], %[[S]] {bits = 4, block = 32} : tensor<1x1xf32>
glow_high.func @splats(%x: tensor<1x32xf32>) -> tensor<1x1xf32> {
  %c = glow_high.splat {value = 7 : ui8} : tensor<1x16xui8>
  %s = glow_high.splat {value = 0.5 : f32} : tensor<1x1xf32>
  %y = glow_high.blockwise_matmul %x, %c, %s {bits = 4, block = 32} : tensor<1x1xf32>
  glow_high.return %y
}

// Blocks of codes that are known at run time only become numbers; kernels read constants.

// CHECK-LABEL: glow_high.func @blocks(
// CHECK:         %[[W:.*]] = glow_high.blockwise_dequantize %c, %s {bits = 4, block = 16} : tensor<5x32xf32>
// CHECK-NEXT:    glow_high.matmul %x, %[[W]] {transpose_right = true} : tensor<1x5xf32>
// CHECK:         glow_high.blockwise_matmul %x, %{{.*}}, %{{.*}} {bits = 4, block = 16} : tensor<1x5xf32>
glow_high.constant @codes : tensor<5x16xui8> {value = dense<1> : tensor<5x16xui8>}
glow_high.constant @scales : tensor<5x2xf32> {value = dense<0.5> : tensor<5x2xf32>}
glow_high.func @blocks(%x: tensor<1x32xf32>, %c: tensor<5x16xui8>, %s: tensor<5x2xf32>) -> (tensor<1x5xf32>, tensor<1x5xf32>) {
  %y = glow_high.blockwise_matmul %x, %c, %s {bits = 4, block = 16} : tensor<1x5xf32>
  %codes = glow_high.get @codes : tensor<5x16xui8>
  %scales = glow_high.get @scales : tensor<5x2xf32>
  %z = glow_high.blockwise_matmul %x, %codes, %scales {bits = 4, block = 16} : tensor<1x5xf32>
  glow_high.return %y, %z
}

// With enough columns, zero points of unsigned weights are those of signed ones. If these are no zeros, they are
// multiplied by the sums of rows. Zero points that leave differences of 8 bits are subtracted from the weights.

// CHECK-LABEL: glow_high.func @unsigned(
// CHECK:         %[[W:.*]] = glow_high.get @{{.*}} : tensor<3x8xi8>
// CHECK:         %[[S:.*]] = glow_high.matmul %x, %[[W]] : tensor<2x8xi32>
// CHECK:         %[[T:.*]] = glow_high.reduce_sum %{{.*}} {axes = [1]} : tensor<2x1xi32>
// CHECK:         %[[M:.*]] = glow_high.mul %[[T]], %{{.*}} : tensor<2x1xi32>
// CHECK:         glow_high.sub %[[S]], %[[M]] : tensor<2x8xi32>
// CHECK:         glow_high.matmul %x, %{{.*}} : tensor<2x8xi32>
// CHECK-NOT:     glow_high.reduce_sum
// CHECK:         glow_high.return
glow_high.constant @wide : tensor<3x8xui8> {value = dense<200> : tensor<3x8xui8>}
glow_high.constant @narrow : tensor<3x8xui8> {value = dense<100> : tensor<3x8xui8>}
glow_high.func @unsigned(%x: tensor<2x3xui8>) -> (tensor<2x8xi32>, tensor<2x8xi32>) {
  %w = glow_high.get @wide : tensor<3x8xui8>
  %y = glow_high.matmul %x, %w : tensor<2x8xi32>
  %v = glow_high.get @narrow : tensor<3x8xui8>
  %z = glow_high.matmul %x, %v : tensor<2x8xi32>
  glow_high.return %y, %z
}
