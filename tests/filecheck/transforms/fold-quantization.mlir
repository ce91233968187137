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

// Codes of other scales than that of their concatenation are rescaled; a change of scale alone is one operator.

// CHECK-LABEL: glow_high.func @apart(
// CHECK:         %[[B:.*]] = glow_high.rescale %y, %{{.*}} {to = !quant.uniform<i8:f32, 0.5>}
// CHECK-NEXT:    %[[D:.*]] = glow_high.concat %x, %[[B]]
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

// -----

// A sum of codes of two scales is one change of scale, of which the other codes are the offset. Limits are those of codes.

// CHECK-LABEL: glow_high.func @sum(
// CHECK:         %[[I:.*]] = glow_high.storage_cast %y {to = i8}
// CHECK-NEXT:    %[[O:.*]] = glow_high.dequantize %[[I]], %{{.*}} : tensor<4xf32>
// CHECK:         %[[K:.*]] = glow_high.add %[[O]], %{{.*}} : tensor<4xf32>
// CHECK-NEXT:    %[[S:.*]] = glow_high.rescale %x, %{{.*}}, %[[K]] {to = !quant.uniform<i8<3:127>:f32, 0.5:3>}
// CHECK-NEXT:    %[[R:.*]] = glow_high.storage_cast %[[S]] {to = !quant.uniform<i8:f32, 0.5:3>}
// CHECK-NEXT:    glow_high.return %[[R]]
glow_high.func @sum(%x: tensor<4x!quant.uniform<i8:f32, 0.5:1>>, %y: tensor<4x!quant.uniform<i8:f32, 0.25:4>>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>> {
  %0 = glow_high.dequantize %x : tensor<4xf32>
  %1 = glow_high.dequantize %y : tensor<4xf32>
  %2 = glow_high.sub %0, %1 : tensor<4xf32>
  %3 = glow_high.relu %2 : tensor<4xf32>
  %4 = glow_high.quantize %3 {to = !quant.uniform<i8:f32, 0.5:3>} : tensor<4x!quant.uniform<i8:f32, 0.5:3>>
  glow_high.return %4
}

// -----

// Limits alone are those of integers; a sign is the highest bit.

// CHECK-LABEL: glow_high.func @same(
// CHECK:         %[[I:.*]] = glow_high.storage_cast %x {to = i8}
// CHECK-NEXT:    %[[L:.*]] = glow_high.splat {value = 3 : i8}
// CHECK-NEXT:    %[[C:.*]] = glow_high.clip %[[I]], %[[L]] : tensor<4xi8>
// CHECK-NEXT:    %[[A:.*]] = glow_high.storage_cast %[[C]] {to = !quant.uniform<i8:f32, 0.5:3>}
// CHECK:         %[[U:.*]] = glow_high.bit_cast %{{.*}} {to = ui8}
// CHECK:         %[[X:.*]] = glow_high.bitwise_xor %[[U]], %{{.*}} : tensor<4xui8>
// CHECK-NEXT:    %[[B:.*]] = glow_high.storage_cast %[[X]] {to = !quant.uniform<u8:f32, 0.5:131>}
// CHECK-NEXT:    glow_high.return %[[A]], %[[B]]
glow_high.func @same(%x: tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> (tensor<4x!quant.uniform<i8:f32, 0.5:3>>, tensor<4x!quant.uniform<u8:f32, 0.5:131>>) {
  %0 = glow_high.dequantize %x : tensor<4xf32>
  %1 = glow_high.relu %0 : tensor<4xf32>
  %2 = glow_high.quantize %1 {to = !quant.uniform<i8:f32, 0.5:3>} : tensor<4x!quant.uniform<i8:f32, 0.5:3>>
  %3 = glow_high.quantize %0 {to = !quant.uniform<u8:f32, 0.5:131>} : tensor<4x!quant.uniform<u8:f32, 0.5:131>>
  glow_high.return %2, %3
}

// -----

// Means are sums of codes: over axes, of windows, and of whole images, which are windows too.

// CHECK-LABEL: glow_high.func @means(
// CHECK:         %[[I:.*]] = glow_high.storage_cast %x {to = i8}
// CHECK-NEXT:    %[[S:.*]] = glow_high.sum_pool %[[I]] {kernel_shape = [4, 4]} : tensor<1x1x1x8xi32>
// CHECK:         %[[T:.*]] = glow_high.storage_cast %{{.*}} {to = !quant.uniform<i32:f32, 0.03125:48>}
// CHECK:         %[[A:.*]] = glow_high.rescale %[[T]], %{{.*}} {to = !quant.uniform<i8:f32, 0.5:3>}
// CHECK:         %[[P:.*]] = glow_high.sum_pool %x {kernel_shape = [2, 2], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x3x3x8xi32>
// CHECK:         %[[B:.*]] = glow_high.rescale %[[P]], %{{.*}} {to = !quant.uniform<i8:f32, 0.5:3>}
// CHECK:         %[[W:.*]] = glow_high.cast %{{.*}} {to = i32} : tensor<1x4x4x8xi32>
// CHECK-NEXT:    %[[R:.*]] = glow_high.reduce_sum %[[W]] {axes = [2, 3]} : tensor<1x4x1x1xi32>
glow_high.func @means(%x: tensor<1x4x4x8x!quant.uniform<i8:f32, 0.5:3>>) -> (tensor<1x1x1x8x!quant.uniform<i8:f32, 0.5:3>>, tensor<1x3x3x8x!quant.uniform<i8:f32, 0.5:3>>, tensor<1x4x1x1x!quant.uniform<i8:f32, 0.5:3>>) {
  %0 = glow_high.dequantize %x : tensor<1x4x4x8xf32>
  %1 = glow_high.reduce_mean %0 {axes = [1, 2]} : tensor<1x1x1x8xf32>
  %2 = glow_high.quantize %1 {to = !quant.uniform<i8:f32, 0.5:3>} : tensor<1x1x1x8x!quant.uniform<i8:f32, 0.5:3>>
  %3 = glow_high.avg_pool %0 {kernel_shape = [2, 2]} : tensor<1x3x3x8xf32>
  %4 = glow_high.quantize %3 {to = !quant.uniform<i8:f32, 0.5:3>} : tensor<1x3x3x8x!quant.uniform<i8:f32, 0.5:3>>
  %5 = glow_high.reduce_mean %0 {axes = [2, 3]} : tensor<1x4x1x1xf32>
  %6 = glow_high.quantize %5 {to = !quant.uniform<i8:f32, 0.5:3>} : tensor<1x4x1x1x!quant.uniform<i8:f32, 0.5:3>>
  glow_high.return %2, %4, %6
}

// -----

// A function of one code is a table, through other codes and with more than one use of the first.

// CHECK-LABEL: glow_high.func @function(
// CHECK:         %[[T:.*]] = glow_high.get @table
// CHECK-NEXT:    %[[L:.*]] = glow_high.lookup %x, %[[T]] : tensor<4xui8>
// CHECK-NEXT:    %[[Q:.*]] = glow_high.storage_cast %[[L]] {to = !quant.uniform<u8:f32, 0.25>}
// CHECK-NEXT:    glow_high.return %[[Q]]
glow_high.func @function(%x: tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4x!quant.uniform<u8:f32, 0.25>> {
  %0 = glow_high.dequantize %x : tensor<4xf32>
  %1 = glow_high.sigmoid %0 : tensor<4xf32>
  %2 = glow_high.quantize %1 {to = !quant.uniform<u8:f32, 0.0078125>} : tensor<4x!quant.uniform<u8:f32, 0.0078125>>
  %3 = glow_high.dequantize %2 : tensor<4xf32>
  %4 = glow_high.mul %0, %3 : tensor<4xf32>
  %5 = glow_high.quantize %4 {to = !quant.uniform<u8:f32, 0.25>} : tensor<4x!quant.uniform<u8:f32, 0.25>>
  glow_high.return %5
}

// -----

// Sums that might not fit into 32 bits stay those of floats: of wide codes, and of too many narrow ones.

// CHECK-LABEL: glow_high.func @wide(
// CHECK:         glow_high.matmul %{{.*}}, %{{.*}} : tensor<2x3xf32>
// CHECK-LABEL: glow_high.func @many(
// CHECK:         glow_high.matmul %{{.*}}, %{{.*}} : tensor<1x1xf32>
glow_high.func @wide(%x: tensor<2x4x!quant.uniform<i16:f32, 0.5>>, %w: tensor<4x3x!quant.uniform<i16:f32, 0.5>>) -> tensor<2x3xf32> {
  %0 = glow_high.dequantize %x : tensor<2x4xf32>
  %1 = glow_high.dequantize %w : tensor<4x3xf32>
  %2 = glow_high.matmul %0, %1 : tensor<2x3xf32>
  glow_high.return %2
}
glow_high.func @many(%x: tensor<1x80000x!quant.uniform<u8:f32, 0.5>>, %w: tensor<80000x1x!quant.uniform<i8:f32, 0.5>>) -> tensor<1x1xf32> {
  %0 = glow_high.dequantize %x : tensor<1x80000xf32>
  %1 = glow_high.dequantize %w : tensor<80000x1xf32>
  %2 = glow_high.matmul %0, %1 : tensor<1x1xf32>
  glow_high.return %2
}

// -----

// Where channels are not the last axis, scales and bias do not broadcast along them.

// CHECK-LABEL: glow_high.func @channels_first(
// CHECK:         glow_high.conv %{{.*}}, %{{.*}}, %{{.*}} {layout = "channels_first"} : tensor<1x2x2x2xf32>
glow_high.func @channels_first(%x: tensor<1x3x2x2x!quant.uniform<u8:f32, 0.5>>, %w: tensor<2x3x1x1xi8>, %s: tensor<2x1x1x1xf32>, %b: tensor<2xf32>) -> tensor<1x2x2x2xf32> {
  %0 = glow_high.dequantize %x : tensor<1x3x2x2xf32>
  %1 = glow_high.dequantize %w, %s : tensor<2x3x1x1xf32>
  %2 = glow_high.conv %0, %1, %b {layout = "channels_first"} : tensor<1x2x2x2xf32>
  glow_high.return %2
}

// -----

// A product of two codes is one of integers; a scale for each filter stays with its axis where filters are reshaped.

// CHECK-LABEL: glow_high.func @products(
// CHECK:         %[[P:.*]] = glow_high.mul %{{.*}}, %{{.*}} : tensor<4xi32>
// CHECK:         %[[R:.*]] = glow_high.rescale %[[P]], %{{.*}} {to = !quant.uniform<i8:f32, 0.5>}
// CHECK:         %[[M:.*]] = glow_high.matmul %v, %{{.*}} {transpose_right = true} : tensor<2x8xi32>
// CHECK:         %[[S:.*]] = glow_high.rescale %[[M]], %{{.*}} {to = !quant.uniform<i8:f32, 0.5>}
// CHECK-NEXT:    glow_high.return %[[R]], %[[S]]
glow_high.constant @w : tensor<8x4x1x1xi8> {value = dense<1> : tensor<8x4x1x1xi8>}
glow_high.constant @s : tensor<8x1x1x1xf32> {value = dense<0.25> : tensor<8x1x1x1xf32>}
glow_high.func @products(%x: tensor<4x!quant.uniform<i8:f32, 0.5:3>>, %y: tensor<4x!quant.uniform<u8:f32, 0.25>>, %v: tensor<2x4x!quant.uniform<i8:f32, 0.5:3>>) -> (tensor<4x!quant.uniform<i8:f32, 0.5>>, tensor<2x8x!quant.uniform<i8:f32, 0.5>>) {
  %0 = glow_high.dequantize %x : tensor<4xf32>
  %1 = glow_high.dequantize %y : tensor<4xf32>
  %2 = glow_high.mul %0, %1 : tensor<4xf32>
  %3 = glow_high.quantize %2 {to = !quant.uniform<i8:f32, 0.5>} : tensor<4x!quant.uniform<i8:f32, 0.5>>
  %w = glow_high.get @w : tensor<8x4x1x1xi8>
  %s = glow_high.get @s : tensor<8x1x1x1xf32>
  %4 = glow_high.dequantize %w, %s : tensor<8x4x1x1xf32>
  %5 = glow_high.reshape %4 {shape = [8, 4]} : tensor<8x4xf32>
  %6 = glow_high.dequantize %v : tensor<2x4xf32>
  %7 = glow_high.matmul %6, %5 {transpose_right = true} : tensor<2x8xf32>
  %8 = glow_high.quantize %7 {to = !quant.uniform<i8:f32, 0.5>} : tensor<2x8x!quant.uniform<i8:f32, 0.5>>
  glow_high.return %3, %8
}

// Products with numbers that blocks of codes stand for read the codes, where these are constants.

glow_high.constant @blocks : tensor<5x16xui8> {value = dense<1> : tensor<5x16xui8>}
glow_high.constant @block_scales : tensor<5x2xf32> {value = dense<0.5> : tensor<5x2xf32>}

// CHECK-LABEL: glow_high.func @blocks_multiplied(
// CHECK:         glow_high.blockwise_matmul %x, %{{.*}}, %{{.*}}, none, none, %b {bits = 4, block = 16} : tensor<3x5xf32>
// CHECK-NEXT:    glow_high.blockwise_matmul %x, %{{.*}}, %{{.*}}, none, none, %b {bits = 4, block = 16} : tensor<3x5xf32>
// CHECK:         glow_high.matmul %y, %w : tensor<3x32xf32>
glow_high.func @blocks_multiplied(%x: tensor<3x32xf32>, %y: tensor<3x5xf32>, %b: tensor<5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x32xf32>) {
  %c = glow_high.get @blocks : tensor<5x16xui8>
  %s = glow_high.get @block_scales : tensor<5x2xf32>
  %w = glow_high.blockwise_dequantize %c, %s {bits = 4, block = 16} : tensor<5x32xf32>
  %t = glow_high.transpose %w {permutation = [1, 0]} : tensor<32x5xf32>
  %0 = glow_high.fully_connected %x, %t, %b : tensor<3x5xf32>
  %1 = glow_high.matmul %x, %w, %b {transpose_right = true} : tensor<3x5xf32>
  // Blocks across the sum.
  %2 = glow_high.matmul %y, %w : tensor<3x32xf32>
  glow_high.return %0, %1, %2
}

// CHECK-LABEL: glow_high.func @run_time_blocks(
// CHECK:         glow_high.matmul %x, %{{.*}} {transpose_right = true}
glow_high.func @run_time_blocks(%x: tensor<3x32xf32>, %c: tensor<5x16xui8>, %s: tensor<5x2xf32>) -> tensor<3x5xf32> {
  %w = glow_high.blockwise_dequantize %c, %s {bits = 4, block = 16} : tensor<5x32xf32>
  %0 = glow_high.matmul %x, %w {transpose_right = true} : tensor<3x5xf32>
  glow_high.return %0
}

// Rows of a table of codes are gathered as codes.

// CHECK-LABEL: glow_high.func @gathered(
// CHECK:         %[[C:.*]] = glow_high.gather %c, %i : tensor<2x3x16xui8>
// CHECK-NEXT:    %[[S:.*]] = glow_high.gather %s, %i : tensor<2x3x2xf16>
// CHECK-NEXT:    %[[Z:.*]] = glow_high.gather %z, %i : tensor<2x3x2xui8>
// CHECK-NEXT:    glow_high.blockwise_dequantize %[[C]], %[[S]], %[[Z]] {bits = 4, block = 16} : tensor<2x3x32xf32>
// CHECK:         glow_high.gather %{{.*}}, %i {axis = 1} : tensor<9x2x3xf32>
glow_high.func @gathered(%c: tensor<9x16xui8>, %s: tensor<9x2xf16>, %z: tensor<9x2xui8>, %i: tensor<2x3xi64>) -> (tensor<2x3x32xf32>, tensor<9x2x3xf32>) {
  %w = glow_high.blockwise_dequantize %c, %s, %z {bits = 4, block = 16} : tensor<9x32xf32>
  %0 = glow_high.gather %w, %i : tensor<2x3x32xf32>
  %1 = glow_high.gather %w, %i {axis = 1} : tensor<9x2x3xf32>
  glow_high.return %0, %1
}

// So are minima.

// CHECK-LABEL: glow_high.func @minima(
// CHECK:         %[[M:.*]] = glow_high.gather %m, %i : tensor<2x3x2xf16>
// CHECK-NEXT:    glow_high.blockwise_dequantize %{{.*}}, %{{.*}}, none, %[[M]] {bits = 4, block = 16} : tensor<2x3x32xf32>
glow_high.func @minima(%c: tensor<9x16xui8>, %s: tensor<9x2xf16>, %m: tensor<9x2xf16>, %i: tensor<2x3xi64>) -> tensor<2x3x32xf32> {
  %w = glow_high.blockwise_dequantize %c, %s, none, %m {bits = 4, block = 16} : tensor<9x32xf32>
  %0 = glow_high.gather %w, %i : tensor<2x3x32xf32>
  glow_high.return %0
}
