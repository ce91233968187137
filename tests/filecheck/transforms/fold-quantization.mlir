// Operators between a dequantization and a quantization compute on codes.

// RUN: glow-opt %s -p fold-quantization,canonicalize --split-input-file | filecheck %s

// A convolution of codes with a scale for each filter: a product of integers, then one change of scale with the bias as
// offset. The limits of ReLU are those of the codes.

// CHECK-LABEL: glow_high.func @conv(
// CHECK-NEXT:    %[[W:.*]] = glow_high.get @w
// CHECK:         %[[SUMS:.*]] = glow_high.conv %x, %[[W]] {pads = [1, 1, 1, 1]} : tensor<1x6x6x8xi32>
// CHECK:         %[[Y:.*]] = glow_high.rescale %[[SUMS]], %{{.*}}, %{{.*}} {to = !quant.uniform<u8:f32, 0.5>}
// CHECK-NEXT:    glow_high.return %[[Y]]
glow_high.constant @w : tensor<8x3x3x4xi8> {value = dense<1> : tensor<8x3x3x4xi8>}
glow_high.constant @s : tensor<8x1x1x1xf32> {value = dense<0.25> : tensor<8x1x1x1xf32>}
glow_high.constant @b : tensor<8xf32> {value = dense<3.0> : tensor<8xf32>}
glow_high.func @conv(%x: tensor<1x6x6x4x!quant.uniform<u8:f32, 0.5:7>>) -> tensor<1x6x6x8x!quant.uniform<u8:f32, 0.5>> {
  %w = glow_high.get @w : tensor<8x3x3x4xi8>
  %s = glow_high.get @s : tensor<8x1x1x1xf32>
  %b = glow_high.get @b : tensor<8xf32>
  %0 = glow_high.dequantize %x : tensor<1x6x6x4xf32>
  %1 = glow_high.dequantize %w, %s : tensor<8x3x3x4xf32>
  %2 = glow_high.conv %0, %1, %b {pads = [1, 1, 1, 1]} : tensor<1x6x6x8xf32>
  %3 = glow_high.relu %2 : tensor<1x6x6x8xf32>
  %4 = glow_high.quantize %3 {to = !quant.uniform<u8:f32, 0.5>} : tensor<1x6x6x8x!quant.uniform<u8:f32, 0.5>>
  glow_high.return %4
}

// -----

// What only moves elements, and max-pooling, moves codes; a border of zeros is one of zero points.

// CHECK-LABEL: glow_high.func @moved(
// CHECK:         %[[T:.*]] = glow_high.transpose %x {permutation = [0, 3, 1, 2]} : tensor<1x4x6x6x!quant.uniform<u8:f32, 0.5:7>>
// CHECK-NEXT:    %[[I:.*]] = glow_high.storage_cast %[[T]] {to = ui8}
// CHECK:         %[[Z:.*]] = glow_high.splat {value = 7 : ui8}
// CHECK-NEXT:    %[[P:.*]] = glow_high.pad %[[I]], %[[Z]] {pads = [0, 0, 1, 1, 0, 0, 0, 0]} : tensor<1x4x7x7xui8>
// CHECK-NEXT:    %[[M:.*]] = glow_high.max_pool
// CHECK-SAME:    tensor<1x4x6x6xui8>
// CHECK-NEXT:    %[[Q:.*]] = glow_high.storage_cast %[[M]] {to = !quant.uniform<u8:f32, 0.5:7>}
// CHECK-NEXT:    glow_high.return %[[Q]]
glow_high.func @moved(%x: tensor<1x6x6x4x!quant.uniform<u8:f32, 0.5:7>>) -> tensor<1x4x6x6x!quant.uniform<u8:f32, 0.5:7>> {
  %0 = glow_high.dequantize %x : tensor<1x6x6x4xf32>
  %1 = glow_high.transpose %0 {permutation = [0, 3, 1, 2]} : tensor<1x4x6x6xf32>
  %2 = glow_high.pad %1 {pads = [0, 0, 1, 1, 0, 0, 0, 0]} : tensor<1x4x7x7xf32>
  %3 = glow_high.max_pool %2 {kernel_shape = [2, 2], layout = "channels_first"} : tensor<1x4x6x6xf32>
  %4 = glow_high.quantize %3 {to = !quant.uniform<u8:f32, 0.5:7>} : tensor<1x4x6x6x!quant.uniform<u8:f32, 0.5:7>>
  glow_high.return %4
}

// -----

// Codes of different scales are no codes of one concatenation; a change of scale alone is one operator.

// CHECK-LABEL: glow_high.func @apart(
// CHECK:         %[[A:.*]] = glow_high.dequantize %x
// CHECK-NEXT:    %[[B:.*]] = glow_high.dequantize %y
// CHECK-NEXT:    %[[C:.*]] = glow_high.concat %[[A]], %[[B]]
// CHECK-NEXT:    %[[D:.*]] = glow_high.quantize %[[C]]
// CHECK:         %[[E:.*]] = glow_high.rescale %y, %{{.*}} {to = !quant.uniform<i8:f32, 0.5>}
// CHECK-NEXT:    glow_high.return %[[D]], %[[E]]
glow_high.func @apart(%x: tensor<4x!quant.uniform<i8:f32, 0.5>>, %y: tensor<4x!quant.uniform<i8:f32, 0.25>>) -> (tensor<8x!quant.uniform<i8:f32, 0.5>>, tensor<4x!quant.uniform<i8:f32, 0.5>>) {
  %0 = glow_high.dequantize %x : tensor<4xf32>
  %1 = glow_high.dequantize %y : tensor<4xf32>
  %2 = glow_high.concat %0, %1 {axis = 0} : tensor<8xf32>
  %3 = glow_high.quantize %2 {to = !quant.uniform<i8:f32, 0.5>} : tensor<8x!quant.uniform<i8:f32, 0.5>>
  %4 = glow_high.quantize %1 {to = !quant.uniform<i8:f32, 0.5>} : tensor<4x!quant.uniform<i8:f32, 0.5>>
  glow_high.return %3, %4
}
