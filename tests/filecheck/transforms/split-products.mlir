// Each device has some columns of a product, or channels of a convolution.

// RUN: glow-opt %s -p 'assign-devices{devices="interpreter,interpreter"},split-products{least=1000},fold-constants,remove-unused-storage' | filecheck %s
// RUN: glow-opt %s -p 'assign-devices{devices="interpreter,interpreter"},split-products' | filecheck %s --check-prefix=SMALL
// RUN: glow-opt %s -p 'assign-devices{devices=interpreter},split-products{least=1}' | filecheck %s --check-prefix=SMALL
// SMALL-NOT: concat

glow_high.constant @w : tensor<16x40xf32> {value = dense<0.5> : tensor<16x40xf32>}
glow_high.constant @b : tensor<40xf32> {value = dense<0.25> : tensor<40xf32>}
glow_high.constant @f : tensor<32x3x3x8xf32> {value = dense<0.5> : tensor<32x3x3x8xf32>}
// Parts are of full vectors: 16 columns and 24.
// CHECK: func @product
glow_high.func @product(%x: tensor<8x16xf32>) -> tensor<8x40xf32> {
  // CHECK: %[[A:[0-9]+]] = glow_high.fully_connected %x, {{.*}} {glow.device = "interpreter:0"} : tensor<8x16xf32>
  // CHECK: %[[B:[0-9]+]] = glow_high.fully_connected %x, {{.*}} {glow.device = "interpreter:1"} : tensor<8x24xf32>
  // CHECK: glow_high.concat %[[A]], %[[B]] {axis = 1} : tensor<8x40xf32>
  %w = glow_high.get @w : tensor<16x40xf32>
  %b = glow_high.get @b : tensor<40xf32>
  %0 = glow_high.fully_connected %x, %w, %b : tensor<8x40xf32>
  glow_high.return %0
}
// CHECK: func @convolution
glow_high.func @convolution(%x: tensor<1x6x6x8xf32>) -> tensor<1x4x4x32xf32> {
  // CHECK: %[[A:[0-9]+]] = glow_high.conv %x, {{.*}}glow.device = "interpreter:0"} : tensor<1x4x4x16xf32>
  // CHECK: %[[B:[0-9]+]] = glow_high.conv %x, {{.*}}glow.device = "interpreter:1"} : tensor<1x4x4x16xf32>
  // CHECK: glow_high.concat %[[A]], %[[B]] {axis = 3} : tensor<1x4x4x32xf32>
  %f = glow_high.get @f : tensor<32x3x3x8xf32>
  %0 = glow_high.conv %x, %f : tensor<1x4x4x32xf32>
  glow_high.return %0
}
// What is multiplied by something else than weights stays whole.
// CHECK: func @computed
glow_high.func @computed(%x: tensor<16x40xf32>) -> tensor<40x40xf32> {
  // CHECK: glow_high.matmul %x, %x {transpose_left = true} : tensor<40x40xf32>
  %0 = glow_high.matmul %x, %x {transpose_left = true} : tensor<40x40xf32>
  glow_high.return %0
}
