// Mistakes in what an instruction says of its packed operands.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// What fits.

// CHECK: packing = {right = {form = "panels", shape = [32, 32], panel = 16}}
glow_high.constant @packed : tensor<2x32x16xf32> {value = dense<1.0> : tensor<2x32x16xf32>}
glow_low.func @main(@in %x: memref<8x32xf32>, @out %y: memref<8x32xf32>) {
  %w = glow_low.weight @packed : memref<2x32x16xf32>
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "panels", shape = array<i64: 32, 32>, panel = 16}}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'packing' of 'filter' needs 'shape', a list of whole numbers from 0 on}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", panel = 16, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'packing' of 'filter' needs 'shape', a list of whole numbers from 0 on}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = 4, panel = 16, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'packing' of 'filter' needs 'shape', a list of whole numbers from 0 on}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<f32: 32.0, 3.0>, panel = 16, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'packing' of 'filter' needs 'shape', a list of whole numbers from 0 on}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, -32>, panel = 16, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'packing' of 'filter' needs 'form', a name}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = 1, shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'packing' of 'filter' needs 'form', a name}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = 3}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'stride' of the packed 'filter' is a whole number from 0 on, not "a"}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = "a"}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{there is no operand 'nosuch' for 'packing'}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {nosuch = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{there is no operand 'bias' for 'packing'}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {bias = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{@out has type memref<1x10x10x32xf32>, but tensor<1x10x10x64xf32> follows from the operands}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 64, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{the filter reads 16 channels a group, the input has 32}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x32x16xf32> {value = dense<1.0> : tensor<2x32x16xf32>}
glow_low.func @main(@in %x: memref<8x32xf32>, @out %y: memref<8x32xf32>) {
  %w = glow_low.weight @packed : memref<2x32x16xf32>
  // expected-error @below {{the operands' inner sizes differ: 32 and 99}}
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "panels", shape = array<i64: 99, 99>, panel = 16}}}
}

// -----

// An instruction that packs says of what.

glow_low.func @main(@in %w: memref<32x32xf32>, @out %panels: memref<2x32x16xf32>) {
  // expected-error @below {{'packing' of 'source' needs 'form', a name}}
  glow_low.pack @out %panels, @in %w {layout = {shape = array<i64: 32, 32>, panel = 16}}
}

// -----

glow_low.func @main(@in %w: memref<32x32xf32>, @out %panels: memref<2x32x16xf32>) {
  // expected-error @below {{what is packed has the shape (32, 32), not (16, 64) as 'layout' says}}
  glow_low.pack @out %panels, @in %w {layout = {form = "panels", shape = array<i64: 16, 64>, panel = 16}}
}
