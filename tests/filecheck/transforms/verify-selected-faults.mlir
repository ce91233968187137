// What does not fit to the kernel of an instruction: parts, tiles, packing and scratch.

// RUN: glow-opt %s -p 'verify-selected{target=avx2}' --split-input-file --verify-diagnostics | filecheck %s
// RUN: not glow-opt %s -p 'verify-selected{target=avx2}' --split-input-file 2>&1 | filecheck %s --check-prefix=HINT

// HINT: verify-selected-faults.mlir:{{[0-9]+}}:3: error: there is no kernel 'no-such-kernel' (hint: remove 'kernel', and run 'select')

// What fits.

// CHECK: parts = {lines = 4 : i64}
glow_high.placeholder @x : tensor<4096xf32> {input}
glow_high.placeholder @y : tensor<4096xf32> {output}
glow_low.func @main(@x, @y) attributes {threads = 2} {
  %x = glow_low.weight @x : memref<4096xf32>
  %y = glow_low.weight @y {mutable} : memref<4096xf32>
  glow_low.copy @out %y, @in %x {kernel = "copy", parts = {lines = 4}}
}

// -----

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, parts = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %learned = glow_low.weight @learned : memref<32x3x3x32xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<1x2x288x16xf32>
  glow_low.conv @out %features, @in %image, @in %learned, @scratch %0 {kernel = "conv", tiles = {rows = 100, prefetch = 0}, parts = {pack = 1, rows = 4}}
}

// -----

// Kernels.

glow_high.placeholder @x : tensor<4096xf32> {input}
glow_high.placeholder @y : tensor<4096xf32> {output}
glow_low.func @main(@x, @y) attributes {threads = 2} {
  %x = glow_low.weight @x : memref<4096xf32>
  %y = glow_low.weight @y {mutable} : memref<4096xf32>
  // expected-error @below {{there is no kernel 'no-such-kernel'}}
  glow_low.copy @out %y, @in %x {kernel = "no-such-kernel"}
}

// -----

glow_high.placeholder @x : tensor<4096xf32> {input}
glow_high.placeholder @y : tensor<4096xf32> {output}
glow_low.func @main(@x, @y) attributes {threads = 2} {
  %x = glow_low.weight @x : memref<4096xf32>
  %y = glow_low.weight @y {mutable} : memref<4096xf32>
  // expected-error @below {{the kernel 'matmul' does not execute this glow_low.copy}}
  glow_low.copy @out %y, @in %x {kernel = "matmul"}
}

// -----

// Parts: their axes, their number, all phases, and for how many threads.

glow_high.placeholder @x : tensor<4096xf32> {input}
glow_high.placeholder @y : tensor<4096xf32> {output}
glow_low.func @main(@x, @y) attributes {threads = 2} {
  %x = glow_low.weight @x : memref<4096xf32>
  %y = glow_low.weight @y {mutable} : memref<4096xf32>
  // expected-error @below {{the kernel 'copy' has no axis 'foo' for 'parts'}}
  glow_low.copy @out %y, @in %x {kernel = "copy", parts = {foo = 2}}
}

// -----

glow_high.placeholder @x : tensor<4096xf32> {input}
glow_high.placeholder @y : tensor<4096xf32> {output}
glow_low.func @main(@x, @y) attributes {threads = 2} {
  %x = glow_low.weight @x : memref<4096xf32>
  %y = glow_low.weight @y {mutable} : memref<4096xf32>
  // expected-error @below {{'lines' of the parts cannot be 0}}
  glow_low.copy @out %y, @in %x {kernel = "copy", parts = {lines = 0}}
}

// -----

glow_high.placeholder @x : tensor<4096xf32> {input}
glow_high.placeholder @y : tensor<4096xf32> {output}
glow_low.func @main(@x, @y) attributes {threads = 2} {
  %x = glow_low.weight @x : memref<4096xf32>
  %y = glow_low.weight @y {mutable} : memref<4096xf32>
  // expected-error @below {{'lines' of the parts cannot be -1}}
  glow_low.copy @out %y, @in %x {kernel = "copy", parts = {lines = -1}}
}

// -----

glow_high.placeholder @x : tensor<4096xf32> {input}
glow_high.placeholder @y : tensor<4096xf32> {output}
glow_low.func @main(@x, @y) attributes {threads = 2} {
  %x = glow_low.weight @x : memref<4096xf32>
  %y = glow_low.weight @y {mutable} : memref<4096xf32>
  // expected-error @below {{'lines' of the parts cannot be 65536}}
  glow_low.copy @out %y, @in %x {kernel = "copy", parts = {lines = 65536}}
}

// -----

glow_high.placeholder @x : tensor<4096xf32> {input}
glow_high.placeholder @y : tensor<4096xf32> {output}
glow_low.func @main(@x, @y) attributes {threads = 2} {
  %x = glow_low.weight @x : memref<4096xf32>
  %y = glow_low.weight @y {mutable} : memref<4096xf32>
  // expected-error @below {{'lines' of the parts cannot be "all"}}
  glow_low.copy @out %y, @in %x {kernel = "copy", parts = {lines = "all"}}
}

// -----

glow_high.placeholder @x : tensor<4096xf32> {input}
glow_high.placeholder @y : tensor<4096xf32> {output}
glow_low.func @main(@x, @y) attributes {threads = 2} {
  %x = glow_low.weight @x : memref<4096xf32>
  %y = glow_low.weight @y {mutable} : memref<4096xf32>
  // expected-error @below {{'parts' has none, which is not what the kernel 'copy' cuts this glow_low.copy along}}
  glow_low.copy @out %y, @in %x {kernel = "copy", parts = {}}
}

// -----

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %learned = glow_low.weight @learned : memref<32x3x3x32xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<1x2x288x16xf32>
  // expected-error @below {{'parts' has 'rows', which is not what the kernel 'conv' cuts this glow_low.conv along}}
  glow_low.conv @out %features, @in %image, @in %learned, @scratch %0 {kernel = "conv", tiles = {rows = 100, prefetch = 0}, parts = {rows = 4}}
}

// -----

glow_high.placeholder @x : tensor<4096xf32> {input}
glow_high.placeholder @y : tensor<4096xf32> {output}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x : memref<4096xf32>
  %y = glow_low.weight @y {mutable} : memref<4096xf32>
  // expected-error @below {{there are 'parts' in a function for one thread}}
  glow_low.copy @out %y, @in %x {kernel = "copy", parts = {lines = 4}}
}

// -----

glow_high.placeholder @x : tensor<4096xf32> {input}
glow_high.placeholder @y : tensor<4096xf32> {output}
// expected-error @below {{@main cannot be for 0 : i64 threads}}
glow_low.func @main(@x, @y) attributes {threads = 0} {
  %x = glow_low.weight @x : memref<4096xf32>
  %y = glow_low.weight @y {mutable} : memref<4096xf32>
  glow_low.copy @out %y, @in %x {kernel = "copy"}
}

// -----

glow_high.placeholder @x : tensor<4096xf32> {input}
glow_high.placeholder @y : tensor<4096xf32> {output}
// expected-error @below {{@main cannot be for 1025 : i64 threads}}
glow_low.func @main(@x, @y) attributes {threads = 1025} {
  %x = glow_low.weight @x : memref<4096xf32>
  %y = glow_low.weight @y {mutable} : memref<4096xf32>
  glow_low.copy @out %y, @in %x {kernel = "copy"}
}

// -----

// Tiles: names that the kernel has, all that it needs, numbers for which its scratch has room.

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %learned = glow_low.weight @learned : memref<32x3x3x32xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<1x2x288x16xf32>
  // expected-error @below {{the kernel 'conv' has no tiles 'height'}}
  glow_low.conv @out %features, @in %image, @in %learned, @scratch %0 {kernel = "conv", tiles = {height = 4}, parts = {pack = 1, rows = 4}}
}

// -----

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %learned = glow_low.weight @learned : memref<32x3x3x32xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<1x2x288x16xf32>
  // expected-error @below {{'rows' of the tiles cannot be 0}}
  glow_low.conv @out %features, @in %image, @in %learned, @scratch %0 {kernel = "conv", tiles = {rows = 0}, parts = {pack = 1, rows = 4}}
}

// -----

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %learned = glow_low.weight @learned : memref<32x3x3x32xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<1x2x288x16xf32>
  // expected-error @below {{'prefetch' of the tiles cannot be 2}}
  glow_low.conv @out %features, @in %image, @in %learned, @scratch %0 {kernel = "conv", tiles = {rows = 100, prefetch = 2}, parts = {pack = 1, rows = 4}}
}

// -----

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'height' of the packed 'filter' is 4, not 2}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 2, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, parts = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'block' of the tiles cannot be 10}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 10, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, parts = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{the kernel 'conv-winograd' needs 'block' in 'tiles'}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, parts = {transform = 7, columns = 2}}
}

// -----

// Packed for another target.

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'panel' of the packed 'filter' is 32, not 16}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 32, height = 4, width = 4, stride = 1}}, parts = {transform = 7, columns = 2}}
}

// -----

// Packed as the kernel wants it: all operands, forms and numbers, and of the type that follows.

glow_high.constant @packed : tensor<1x36x32x16xf32> {value = dense<1.0> : tensor<1x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<1x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{the packed 'filter' is memref<1x36x32x16xf32>, not memref<2x36x32x16xf32>}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, parts = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'form' of the packed 'filter' is panels, not winograd}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "panels", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, parts = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'form' of the packed 'filter' is nonsense, not winograd}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "nonsense", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, parts = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'stride' of the packed 'filter' is missing, not 1}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4}}, parts = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'foo' of the packed 'filter' is 1, not missing}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1, foo = 1}}, parts = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'packing' has 'filter', 'input', the kernel 'conv-winograd' packs 'filter'}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}, input = {form = "panels", shape = array<i64: 1, 12, 12, 32>}}, parts = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<32x3x3x32xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{the kernel 'conv-winograd' needs its operands packed}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, parts = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<32x3x3x32xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{'packing' has none, the kernel 'conv-winograd' packs 'filter'}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {}, parts = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @packed : tensor<1x32x16xf32> {value = dense<1.0> : tensor<1x32x16xf32>}
glow_high.placeholder @x : tensor<8x32xf32> {input}
glow_high.placeholder @y : tensor<8x32xf32> {output}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x : memref<8x32xf32>
  %w = glow_low.weight @packed : memref<1x32x16xf32>
  %y = glow_low.weight @y {mutable} : memref<8x32xf32>
  // expected-error @below {{the packed 'right' is memref<1x32x16xf32>, not memref<2x32x16xf32>}}
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "panels", shape = array<i64: 32, 32>, panel = 16}}}
}

// -----

glow_high.constant @packed : tensor<2x32x16xf64> {value = dense<1.0> : tensor<2x32x16xf64>}
glow_high.placeholder @x : tensor<8x32xf32> {input}
glow_high.placeholder @y : tensor<8x32xf32> {output}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x : memref<8x32xf32>
  %w = glow_low.weight @packed : memref<2x32x16xf64>
  %y = glow_low.weight @y {mutable} : memref<8x32xf32>
  // expected-error @below {{the packed 'right' is memref<2x32x16xf64>, not memref<2x32x16xf32>}}
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "panels", shape = array<i64: 32, 32>, panel = 16}}}
}

// -----

glow_high.constant @packed : tensor<2x32x16xf32> {value = dense<1.0> : tensor<2x32x16xf32>}
glow_high.placeholder @x : tensor<8x32xf32> {input}
glow_high.placeholder @y : tensor<8x32xf32> {output}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x : memref<8x32xf32>
  %w = glow_low.weight @packed : memref<2x32x16xf32>
  %y = glow_low.weight @y {mutable} : memref<8x32xf32>
  // expected-error @below {{'form' of the packed 'right' is panels_transposed, not panels}}
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "panels_transposed", shape = array<i64: 32, 32>, panel = 16}}}
}

// -----

glow_high.constant @packed : tensor<2x32x16xf32> {value = dense<1.0> : tensor<2x32x16xf32>}
glow_high.placeholder @x : tensor<8x32xf32> {input}
glow_high.placeholder @y : tensor<8x32xf32> {output}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x : memref<8x32xf32>
  %w = glow_low.weight @packed : memref<2x32x16xf32>
  %y = glow_low.weight @y {mutable} : memref<8x32xf32>
  // expected-error @below {{'form' of the packed 'right' is strassen, not panels}}
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "strassen", shape = array<i64: 32, 32>, panel = 16}}}
}

// -----

glow_high.constant @packed : tensor<2x32x16xf32> {value = dense<1.0> : tensor<2x32x16xf32>}
glow_high.placeholder @x : tensor<8x32xf32> {input}
glow_high.placeholder @y : tensor<8x32xf32> {output}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x : memref<8x32xf32>
  %w = glow_low.weight @packed : memref<2x32x16xf32>
  %y = glow_low.weight @y {mutable} : memref<8x32xf32>
  // expected-error @below {{'form' of the packed 'right' is panels, not panels_transposed}}
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "panels", shape = array<i64: 32, 32>, panel = 16}}, transpose_right = true}
}

// -----

glow_high.constant @packed : tensor<1x7x16x16xf32> {value = dense<1.0> : tensor<1x7x16x16xf32>}
glow_high.placeholder @x : tensor<8x32xf32> {input}
glow_high.placeholder @y : tensor<8x30xf32> {output}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x : memref<8x32xf32>
  %w = glow_low.weight @packed : memref<1x7x16x16xf32>
  %y = glow_low.weight @y {mutable} : memref<8x30xf32>
  // expected-error @below {{'packing' has 'right', the kernel 'matmul-strassen' packs none}}
  glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul-strassen", tiles = {rows = 8, prefetch = 0}, packing = {right = {form = "strassen", shape = array<i64: 32, 30>, panel = 16}}}
}

// -----

glow_high.constant @packed : tensor<1x1x24x24xf32> {value = dense<1.0> : tensor<1x1x24x24xf32>}
glow_high.placeholder @x : tensor<3x1x24xf32> {input}
glow_high.placeholder @h : tensor<1x24xf32> {input}
glow_high.placeholder @s : tensor<3x1x24xf32> {output}
glow_high.placeholder @l : tensor<1x24xf32> {output}
glow_low.func @main(@x, @h, @s, @l) {
  %w = glow_low.weight @packed : memref<1x1x24x24xf32>
  %x = glow_low.weight @x : memref<3x1x24xf32>
  %h = glow_low.weight @h : memref<1x24xf32>
  %s = glow_low.weight @s {mutable} : memref<3x1x24xf32>
  %l = glow_low.weight @l {mutable} : memref<1x24xf32>
  %0 = glow_low.alloc : memref<1x24xf32>
  %1 = glow_low.alloc : memref<2x1x24xf32>
  glow_low.rnn_recurrence @out %s, @out %l, @in %x, @in %w, @in %h, @scratch %0, @scratch %1 {kernel = "rnn-recurrence", packing = {weights = {form = "gates", shape = array<i64: 24, 24>, together = 1, units = 24}}}
}

// -----

glow_high.constant @packed : tensor<1x1x24x24xf32> {value = dense<1.0> : tensor<1x1x24x24xf32>}
glow_high.placeholder @x : tensor<3x1x24xf32> {input}
glow_high.placeholder @h : tensor<1x24xf32> {input}
glow_high.placeholder @s : tensor<3x1x24xf32> {output}
glow_high.placeholder @l : tensor<1x24xf32> {output}
glow_low.func @main(@x, @h, @s, @l) {
  %w = glow_low.weight @packed : memref<1x1x24x24xf32>
  %x = glow_low.weight @x : memref<3x1x24xf32>
  %h = glow_low.weight @h : memref<1x24xf32>
  %s = glow_low.weight @s {mutable} : memref<3x1x24xf32>
  %l = glow_low.weight @l {mutable} : memref<1x24xf32>
  %0 = glow_low.alloc : memref<1x24xf32>
  %1 = glow_low.alloc : memref<2x1x24xf32>
  // expected-error @below {{'units' of the packed 'weights' is 8, not 24}}
  glow_low.rnn_recurrence @out %s, @out %l, @in %x, @in %w, @in %h, @scratch %0, @scratch %1 {kernel = "rnn-recurrence", packing = {weights = {form = "gates", shape = array<i64: 24, 24>, together = 1, units = 8}}}
}

// -----

glow_high.constant @packed : tensor<1x1x12x24xf32> {value = dense<1.0> : tensor<1x1x12x24xf32>}
glow_high.placeholder @x : tensor<3x1x24xf32> {input}
glow_high.placeholder @h : tensor<1x24xf32> {input}
glow_high.placeholder @s : tensor<3x1x24xf32> {output}
glow_high.placeholder @l : tensor<1x24xf32> {output}
glow_low.func @main(@x, @h, @s, @l) {
  %w = glow_low.weight @packed : memref<1x1x12x24xf32>
  %x = glow_low.weight @x : memref<3x1x24xf32>
  %h = glow_low.weight @h : memref<1x24xf32>
  %s = glow_low.weight @s {mutable} : memref<3x1x24xf32>
  %l = glow_low.weight @l {mutable} : memref<1x24xf32>
  %0 = glow_low.alloc : memref<1x24xf32>
  %1 = glow_low.alloc : memref<2x1x24xf32>
  // expected-error @below {{the packed 'weights' is memref<1x1x12x24xf32>, not memref<1x1x24x24xf32>}}
  glow_low.rnn_recurrence @out %s, @out %l, @in %x, @in %w, @in %h, @scratch %0, @scratch %1 {kernel = "rnn-recurrence", packing = {weights = {form = "gates", shape = array<i64: 24, 24>, together = 1, units = 24}}}
}

// -----

glow_high.constant @packed : tensor<1x1x24x24xf32> {value = dense<1.0> : tensor<1x1x24x24xf32>}
glow_high.placeholder @x : tensor<3x1x24xf32> {input}
glow_high.placeholder @h : tensor<1x24xf32> {input}
glow_high.placeholder @s : tensor<3x1x24xf32> {output}
glow_high.placeholder @l : tensor<1x24xf32> {output}
glow_high.constant @q : tensor<24x24xf32> {value = dense<1.0> : tensor<24x24xf32>}
glow_low.func @main(@x, @h, @s, @l) {
  %w = glow_low.weight @packed : memref<1x1x24x24xf32>
  %x = glow_low.weight @x : memref<3x1x24xf32>
  %h = glow_low.weight @h : memref<1x24xf32>
  %s = glow_low.weight @s {mutable} : memref<3x1x24xf32>
  %l = glow_low.weight @l {mutable} : memref<1x24xf32>
  %q = glow_low.weight @q : memref<24x24xf32>
  %0 = glow_low.alloc : memref<1x24xf32>
  %1 = glow_low.alloc : memref<2x1x24xf32>
  // expected-error @below {{'packing' has 'input', the kernel 'rnn-recurrence' packs 'weights'}}
  glow_low.rnn_recurrence @out %s, @out %l, @in %x, @in %q, @in %h, @scratch %0, @scratch %1 {kernel = "rnn-recurrence", packing = {input = {form = "gates", shape = array<i64: 3, 1, 24>, together = 1, units = 24}}}
}

// -----

// Scratch: as much as the kernel needs, one for each thread.

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %learned = glow_low.weight @learned : memref<32x3x3x32xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<1x2x288x8xf32>
  // expected-error @below {{@scratch of the kernel 'conv' has 1x2x288x16xf32, not 1x2x288x8xf32}}
  glow_low.conv @out %features, @in %image, @in %learned, @scratch %0 {kernel = "conv", tiles = {rows = 100, prefetch = 0}, parts = {pack = 1, rows = 4}}
}

// -----

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  // expected-error @below {{@scratch of the kernel 'conv-winograd' has 36x304xf32, 2x36x160xf32, 2x36x32xf32, not 36x304xf32, 36x160xf32, 2x36x32xf32}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, parts = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) attributes {threads = 2} {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  // expected-error @below {{@scratch of the kernel 'conv-winograd' has 36x304xf32, 2x36x160xf32, 2x36x32xf32, not 36x304xf32}}
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, parts = {transform = 7, columns = 2}}
}
