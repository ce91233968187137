// What is packed otherwise than the kernel of an instruction wants it.

// RUN: glow-opt %s -p 'assign-target{target=avx2 threads=2},verify-selected' --split-input-file --verify-diagnostics | filecheck %s

// What fits.

// CHECK: packing = {weights = {form = "gates", shape = [24, 24], together = 1, units = 24}}
glow_high.constant @packed : tensor<1x1x24x24xf32> {value = dense<1.0> : tensor<1x1x24x24xf32>}
glow_low.func @main(@in %x: memref<3x1x24xf32>, @in %h: memref<1x24xf32>, @out %s: memref<3x1x24xf32>, @out %l: memref<1x24xf32>) {
  %w = glow_low.weight @packed : memref<1x1x24x24xf32>
  %0 = glow_low.alloc : memref<1x24xf32>
  %1 = glow_low.alloc : memref<2x1x24xf32>
  glow_low.rnn_recurrence @out %s, @out %l, @in %x, @in %w, @in %h, @scratch %0, @scratch %1 {kernel = "rnn-recurrence", packing = {weights = {form = "gates", shape = array<i64: 24, 24>, together = 1, units = 24}}}
}

// -----

// Packed for another target.

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'panel' of the packed 'filter' is 32, not 16}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 32, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

// Packed as the kernel wants it: all operands, forms and numbers, and of the type that follows.

glow_high.constant @packed : tensor<1x36x32x16xf32> {value = dense<1.0> : tensor<1x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<1x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{the packed 'filter' is memref<1x36x32x16xf32>, not memref<2x36x32x16xf32>}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'form' of the packed 'filter' is panels, not winograd}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "panels", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'form' of the packed 'filter' is nonsense, not winograd}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "nonsense", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'stride' of the packed 'filter' is missing, not 1}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'foo' of the packed 'filter' is 1, not missing}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1, foo = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'packing' has 'filter', 'input', the kernel 'conv-winograd' packs 'filter'}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}, input = {form = "panels", shape = array<i64: 1, 12, 12, 32>}}, partitions = {transform = 7, columns = 2}}
}

// -----

// What is known at run time only is packed into scratch, of which there is a further buffer.

glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @in %filter: memref<32x3x3x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{@scratch of the kernel 'conv-winograd' has 36x304xf32, 2x36x160xf32, 2x36x32xf32, 2x36x32x16xf32, not 36x304xf32, 2x36x160xf32, 2x36x32xf32}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, partitions = {pack = 2, transform = 7, columns = 2}}
}

// -----

// Channels, or filters, that are no whole vectors of the target.

glow_low.func @main(@in %image: memref<1x9x9x5xf32>, @in %filter: memref<16x3x3x5xf32>, @out %features: memref<1x7x7x16xf32>) {
  %0 = glow_low.alloc : memref<36x36xf32>
  %1 = glow_low.alloc : memref<36x80xf32>
  %2 = glow_low.alloc : memref<36x5xf32>
  // expected-error @below {{the kernel 'conv-winograd' does not execute glow_low.conv of these sizes}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 4, prefetch = 0}}
}

// -----

glow_low.func @main(@in %x: memref<8x32xf32>, @in %w: memref<32x32xf32>, @out %y: memref<8x32xf32>) {
  // expected-error @below {{the kernel 'matmul-strassen' needs its operands packed}}
  glow_low.matmul @out %y, @in %x, @in %w {samples = 1, kernel = "matmul-strassen", tiles = {rows = 8, prefetch = 0, held = 0}}
}

// -----

glow_high.constant @packed : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %filter = glow_low.weight @packed : memref<32x3x3x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'packing' has none, the kernel 'conv-winograd' packs 'filter'}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<1x32x16xf32> {value = dense<1.0> : tensor<1x32x16xf32>}
glow_low.func @main(@in %x: memref<8x32xf32>, @out %y: memref<8x32xf32>) {
  %w = glow_low.weight @packed : memref<1x32x16xf32>
  // expected-error @below {{the packed 'right' is memref<1x32x16xf32>, not memref<2x32x16xf32>}}
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "panels", shape = array<i64: 32, 32>, panel = 16}}}
}

// -----

glow_high.constant @packed : tensor<2x32x16xf64> {value = dense<1.0> : tensor<2x32x16xf64>}
glow_low.func @main(@in %x: memref<8x32xf32>, @out %y: memref<8x32xf32>) {
  %w = glow_low.weight @packed : memref<2x32x16xf64>
  // expected-error @below {{the packed 'right' is memref<2x32x16xf64>, not memref<2x32x16xf32>}}
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "panels", shape = array<i64: 32, 32>, panel = 16}}}
}

// -----

glow_high.constant @packed : tensor<2x32x16xf32> {value = dense<1.0> : tensor<2x32x16xf32>}
glow_low.func @main(@in %x: memref<8x32xf32>, @out %y: memref<8x32xf32>) {
  %w = glow_low.weight @packed : memref<2x32x16xf32>
  // expected-error @below {{'form' of the packed 'right' is panels_transposed, not panels}}
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "panels_transposed", shape = array<i64: 32, 32>, panel = 16}}}
}

// -----

glow_high.constant @packed : tensor<2x32x16xf32> {value = dense<1.0> : tensor<2x32x16xf32>}
glow_low.func @main(@in %x: memref<8x32xf32>, @out %y: memref<8x32xf32>) {
  %w = glow_low.weight @packed : memref<2x32x16xf32>
  // expected-error @below {{'form' of the packed 'right' is strassen, not panels}}
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "strassen", shape = array<i64: 32, 32>, panel = 16}}}
}

// -----

glow_high.constant @packed : tensor<2x32x16xf32> {value = dense<1.0> : tensor<2x32x16xf32>}
glow_low.func @main(@in %x: memref<8x32xf32>, @out %y: memref<8x32xf32>) {
  %w = glow_low.weight @packed : memref<2x32x16xf32>
  // expected-error @below {{'form' of the packed 'right' is panels, not panels_transposed}}
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "panels", shape = array<i64: 32, 32>, panel = 16}}, transpose_right = true}
}

// -----

glow_high.constant @packed : tensor<1x7x16x16xf32> {value = dense<1.0> : tensor<1x7x16x16xf32>}
glow_low.func @main(@in %x: memref<8x32xf32>, @out %y: memref<8x30xf32>) {
  %w = glow_low.weight @packed : memref<1x7x16x16xf32>
  // expected-error @below {{'packing' has 'right', the kernel 'matmul-strassen' packs none}}
  glow_low.matmul @out %y, @in %x, @in %w {samples = 1, kernel = "matmul-strassen", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "strassen", shape = array<i64: 32, 30>, panel = 16}}}
}

// -----

glow_high.constant @packed : tensor<1x1x24x24xf32> {value = dense<1.0> : tensor<1x1x24x24xf32>}
glow_low.func @main(@in %x: memref<3x1x24xf32>, @in %h: memref<1x24xf32>, @out %s: memref<3x1x24xf32>, @out %l: memref<1x24xf32>) {
  %w = glow_low.weight @packed : memref<1x1x24x24xf32>
  %0 = glow_low.alloc : memref<1x24xf32>
  %1 = glow_low.alloc : memref<2x1x24xf32>
  // expected-error @below {{'units' of the packed 'weights' is 8, not 24}}
  glow_low.rnn_recurrence @out %s, @out %l, @in %x, @in %w, @in %h, @scratch %0, @scratch %1 {kernel = "rnn-recurrence", packing = {weights = {form = "gates", shape = array<i64: 24, 24>, together = 1, units = 8}}}
}

// -----

glow_high.constant @packed : tensor<1x1x12x24xf32> {value = dense<1.0> : tensor<1x1x12x24xf32>}
glow_low.func @main(@in %x: memref<3x1x24xf32>, @in %h: memref<1x24xf32>, @out %s: memref<3x1x24xf32>, @out %l: memref<1x24xf32>) {
  %w = glow_low.weight @packed : memref<1x1x12x24xf32>
  %0 = glow_low.alloc : memref<1x24xf32>
  %1 = glow_low.alloc : memref<2x1x24xf32>
  // expected-error @below {{the packed 'weights' is memref<1x1x12x24xf32>, not memref<1x1x24x24xf32>}}
  glow_low.rnn_recurrence @out %s, @out %l, @in %x, @in %w, @in %h, @scratch %0, @scratch %1 {kernel = "rnn-recurrence", packing = {weights = {form = "gates", shape = array<i64: 24, 24>, together = 1, units = 24}}}
}

// -----

glow_high.constant @packed : tensor<1x1x24x24xf32> {value = dense<1.0> : tensor<1x1x24x24xf32>}
glow_high.constant @q : tensor<24x24xf32> {value = dense<1.0> : tensor<24x24xf32>}
glow_low.func @main(@in %x: memref<3x1x24xf32>, @in %h: memref<1x24xf32>, @out %s: memref<3x1x24xf32>, @out %l: memref<1x24xf32>) {
  %w = glow_low.weight @packed : memref<1x1x24x24xf32>
  %q = glow_low.weight @q : memref<24x24xf32>
  %0 = glow_low.alloc : memref<1x24xf32>
  %1 = glow_low.alloc : memref<2x1x24xf32>
  // expected-error @below {{'packing' has 'input', the kernel 'rnn-recurrence' packs 'weights'}}
  glow_low.rnn_recurrence @out %s, @out %l, @in %x, @in %q, @in %h, @scratch %0, @scratch %1 {kernel = "rnn-recurrence", packing = {input = {form = "gates", shape = array<i64: 3, 1, 24>, together = 1, units = 24}}}
}

// -----

// What is written in a layout has its shape.

glow_low.func @main(@in %w: memref<32x32xf32>, @out %panels: memref<4x32x8xf32>) {
  // expected-error @below {{the kernel 'pack' does not execute this glow_low.pack}}
  glow_low.pack @out %panels, @in %w {layout = {form = "panels", shape = array<i64: 32, 32>, panel = 16}, kernel = "pack"}
}

// -----

glow_low.func @main(@in %w: memref<32x32xf32>, @out %panels: memref<1x7x16x16xf32>) {
  // expected-error @below {{the kernel 'pack' does not execute this glow_low.pack}}
  glow_low.pack @out %panels, @in %w {layout = {form = "strassen", shape = array<i64: 32, 32>, panel = 16}, kernel = "pack"}
}
