// Weights of products and rows of tables become blocks of codes.

// RUN: glow-opt %s -p 'quantize-weights{to=int4 block=16}' | filecheck %s
// RUN: glow-opt %s -p 'quantize-weights{to=int4 block=16},fold-quantization' | filecheck %s --check-prefix=FOLDED
// RUN: glow-opt %s -p 'quantize-weights{keep=matmul}' | filecheck %s --check-prefix=KEPT
// RUN: not glow-opt %s -p 'quantize-weights{to=int5}' 2>&1 | filecheck %s --check-prefix=WORD
// RUN: not glow-opt %s -p 'quantize-weights{block=24}' 2>&1 | filecheck %s --check-prefix=BLOCK
// RUN: not glow-opt %s -p 'quantize-weights{keep=nobody}' 2>&1 | filecheck %s --check-prefix=NOBODY

// WORD: there are no weights of 'int5' (hint: they are f32, or int8 or int4)
// BLOCK: blocks cannot have 24 weights (hint: a power of two from 16 on)
// NOBODY: no node whose weights to keep is called 'nobody'

glow_high.constant @w : tensor<32x3xf32> {value = dense<[[1.0, 2.0, 3.0], [-4.0, 5.0, -6.0], [7.0, -8.0, 9.0], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [-4.0, 5.0, -6.0], [7.0, -8.0, 9.0], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [-4.0, 5.0, -6.0], [7.0, -8.0, 9.0], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [-4.0, 5.0, -6.0], [7.0, -8.0, 9.0], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [-4.0, 5.0, -6.0], [7.0, -8.0, 9.0], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [-4.0, 5.0, -6.0], [7.0, -8.0, 9.0], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [-4.0, 5.0, -6.0], [7.0, -8.0, 9.0], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [-4.0, 5.0, -6.0], [7.0, -8.0, 9.0], [0.0, 1.0, 2.0]]> : tensor<32x3xf32>}
glow_high.constant @t : tensor<4x16xf32> {value = dense<0.5> : tensor<4x16xf32>}
glow_high.constant @u : tensor<8x3xf32> {value = dense<0.5> : tensor<8x3xf32>}

// The weights of a product with constant ones, of a layer with a bias, and of a table.

// CHECK-LABEL: glow_high.func @main(
// CHECK:         %[[W:.*]] = glow_high.blockwise_dequantize %{{.*}}, %{{.*}} {bits = 4, block = 16} : tensor<3x32xf32>
// CHECK-NEXT:    glow_high.matmul %x, %[[W]] {transpose_right = true} : tensor<2x3xf32>
// CHECK:         %[[V:.*]] = glow_high.blockwise_dequantize %{{.*}}, %{{.*}} {bits = 4, block = 16} : tensor<3x32xf32>
// CHECK-NEXT:    glow_high.matmul %x, %[[V]], %b {transpose_right = true} : tensor<2x3xf32>
// CHECK:         %[[T:.*]] = glow_high.blockwise_dequantize %{{.*}}, %{{.*}} {bits = 4, block = 16} : tensor<4x16xf32>
// CHECK-NEXT:    glow_high.gather %[[T]], %i : tensor<5x16xf32>

// FOLDED-LABEL: glow_high.func @main(
// FOLDED:         glow_high.blockwise_matmul %x
// FOLDED:         glow_high.blockwise_matmul %x
// FOLDED:         glow_high.gather %{{.*}}, %i : tensor<5x8xui8>
// FOLDED:         glow_high.blockwise_dequantize %{{.*}} : tensor<5x16xf32>

// KEPT-LABEL: glow_high.func @main(
// KEPT:         glow_high.matmul %x, %w : tensor<2x3xf32>
// KEPT:         glow_high.blockwise_dequantize %{{.*}}, %{{.*}} {bits = 8, block = 32}
glow_high.func @main(%x: tensor<2x32xf32>, %b: tensor<3xf32>, %i: tensor<5xi64>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<5x16xf32>) {
  %w = glow_high.get @w : tensor<32x3xf32>
  %t = glow_high.get @t : tensor<4x16xf32>
  %0 = glow_high.matmul %x, %w : tensor<2x3xf32>
  %1 = glow_high.fully_connected %x, %w, %b : tensor<2x3xf32>
  %2 = glow_high.gather %t, %i : tensor<5x16xf32>
  glow_high.return %0, %1, %2
}

// Rows whose codes fill no cells of 32 bits have zeros behind their end, and so has what they are multiplied by.

// CHECK-LABEL: glow_high.func @odd(
// CHECK-DAG:     %[[V:.*]] = glow_high.blockwise_dequantize %{{.*}}, %{{.*}} {bits = 4, block = 16} : tensor<3x24xf32>
// CHECK-DAG:     %[[P:.*]] = glow_high.pad %x {pads = [0, 0, 0, 7]} : tensor<2x24xf32>
// CHECK:         glow_high.matmul %[[P]], %[[V]] {transpose_right = true} : tensor<2x3xf32>
// CHECK:         %[[T:.*]] = glow_high.blockwise_dequantize %{{.*}}, %{{.*}} {bits = 4, block = 16} : tensor<3x24xf32>
// CHECK-NEXT:    %[[R:.*]] = glow_high.gather %[[T]], %i : tensor<5x24xf32>
// CHECK-NEXT:    glow_high.slice %[[R]] {starts = [0, 0], ends = [5, 17]} : tensor<5x17xf32>
glow_high.constant @v : tensor<17x3xf32> {value = dense<0.5> : tensor<17x3xf32>}
glow_high.constant @r : tensor<3x17xf32> {value = dense<0.5> : tensor<3x17xf32>}
glow_high.func @odd(%x: tensor<2x17xf32>, %i: tensor<5xi64>) -> (tensor<2x3xf32>, tensor<5x17xf32>) {
  %v = glow_high.get @v : tensor<17x3xf32>
  %r = glow_high.get @r : tensor<3x17xf32>
  %0 = glow_high.matmul %x, %v : tensor<2x3xf32>
  %1 = glow_high.gather %r, %i : tensor<5x17xf32>
  glow_high.return %0, %1
}

// What is computed at run time stays as it is, and so do products that are no deeper than half a block.

// CHECK-LABEL: glow_high.func @others(
// CHECK-NOT:     blockwise
// CHECK:         glow_high.return
glow_high.func @others(%x: tensor<2x32xf32>, %y: tensor<32x3xf32>, %z: tensor<2x8xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3x2xf32>) {
  %u = glow_high.get @u : tensor<8x3xf32>
  %0 = glow_high.matmul %x, %y : tensor<2x3xf32>
  %1 = glow_high.matmul %z, %u : tensor<2x3xf32>
  %2 = glow_high.matmul %u, %z {transpose_left = true, transpose_right = true} : tensor<3x2xf32>
  glow_high.return %0, %1, %2
}
