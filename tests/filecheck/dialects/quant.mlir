// Quantized element types, in the tensors and buffers of both dialects.

// RUN: glow-opt %s --split-input-file | glow-opt --split-input-file | filecheck %s
// RUN: glow-opt %s --split-input-file --print-op-generic | glow-opt --split-input-file | filecheck %s

// CHECK: glow_high.placeholder @x : tensor<4x2x!quant.uniform<i8:f32, 0.02:3>> {input}
glow_high.placeholder @x : tensor<4x2x!quant.uniform<i8:f32, 0.02:3>> {input}
// CHECK: glow_high.placeholder @y : tensor<2x4x!quant.uniform<i8:f32, 0.02:3>> {output}
glow_high.placeholder @y : tensor<2x4x!quant.uniform<i8<-128:127>:f32, 0.02:3>> {output}
// CHECK: glow_high.placeholder @w : tensor<2x3x!quant.uniform<u8<1:255>:f32:0, {0.5:128, 1.0e-07:1}>> {input}
glow_high.placeholder @w : tensor<2x3x!quant.uniform<u8<1:255>:f32:0, {0.5:128, 1.0e-07:1}>> {input}
// CHECK: glow_high.placeholder @b : tensor<2x!quant.uniform<i32:bf16, 2.0>> {input}
glow_high.placeholder @b : tensor<2x!quant.uniform<i32:bf16, 2.0:0>> {input}

glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4x2x!quant.uniform<i8:f32, 0.02:3>>
  // CHECK: glow_high.transpose %x {permutation = [1, 0]} : tensor<2x4x!quant.uniform<i8:f32, 0.02:3>>
  %0 = glow_high.transpose %x {permutation = [1, 0]} : tensor<2x4x!quant.uniform<i8:f32, 0.02:3>>
  glow_high.save %0, @y
}

// -----

glow_high.placeholder @x : tensor<4x!quant.uniform<i8:f32, 0.02:3>> {input}
glow_high.placeholder @y : tensor<4x!quant.uniform<i8:f32, 0.02:3>> {output}

glow_low.func @low(@x, @y) {
  // CHECK: glow_low.weight @x : memref<4x!quant.uniform<i8:f32, 0.02:3>>
  %x = glow_low.weight @x : memref<4x!quant.uniform<i8:f32, 0.02:3>>
  %y = glow_low.weight @y {mutable} : memref<4x!quant.uniform<i8:f32, 0.02:3>>
  glow_low.copy @out %y, @in %x
}
