// Every buffer gets its place: activations share memory over time, constants lie in a row, bindings go by position.

// RUN: glow-opt %s -p allocate,verify-allocated --split-input-file | filecheck %s
// RUN: not glow-opt %s -p 'assign-target{target=cortex-m4 ram_bytes=300},allocate' --split-input-file 2>&1 | filecheck %s --check-prefix=LIMIT

// RUN: not glow-opt %s -p 'assign-target{target=cortex-m4},allocate' --split-input-file 2>&1 | filecheck %s --check-prefix=SPAN

// LIMIT: @share takes 160 bytes of activations beside 160 of inputs, outputs and state, 20 more than its limit of 300 (hint: {{.*}})

// Cores without caches have no lines: there 80 bytes take 80.

// %c takes the place of %a, which is dead; 80 bytes take 128, since offsets are multiples of 64.

// CHECK-LABEL: glow_low.func @share(@x, @y) attributes {activations = 256, activations_bound = 256, constants = 128} {
// CHECK-NEXT:    %x = glow_low.weight @x {region = "bindings", offset = 0}
// CHECK-NEXT:    %one = glow_low.weight @one {region = "constants", offset = 0}
// CHECK-NEXT:    %y = glow_low.weight @y {mutable, region = "bindings", offset = 1}
// CHECK-NEXT:    %two = glow_low.weight @two {region = "constants", offset = 64}
// CHECK-NEXT:    %a = glow_low.alloc {offset = [[A:[0-9]+]]}
// CHECK:         %b = glow_low.alloc {offset = [[B:[0-9]+]]}
// CHECK:         %c = glow_low.alloc {offset = [[A]]}
glow_high.constant @one : tensor<2xf32> {value = dense<1.0> : tensor<2xf32>}
glow_high.constant @two : tensor<f32> {value = dense<2.0> : tensor<f32>}
glow_high.placeholder @x : tensor<20xf32> {input}
glow_high.placeholder @y : tensor<20xf32> {output}
glow_low.func @share(@x, @y) {
  %x = glow_low.weight @x : memref<20xf32>
  %one = glow_low.weight @one : memref<2xf32>
  %y = glow_low.weight @y {mutable} : memref<20xf32>
  %two = glow_low.weight @two : memref<f32>
  %a = glow_low.alloc : memref<20xf32>
  glow_low.add @out %a, @in %x, @in %two
  %b = glow_low.alloc : memref<20xf32>
  glow_low.neg @out %b, @in %a
  glow_low.dealloc @out %a
  %c = glow_low.alloc : memref<20xf32>
  glow_low.abs @out %c, @in %b
  glow_low.copy @out %y, @in %c
  glow_low.dealloc @out %b
  glow_low.dealloc @out %c
}

// -----

// The order of placement matters: a large buffer must not be split from the gap that two small ones leave.

// CHECK-LABEL: glow_low.func @gap(@x) attributes {activations = 320, activations_bound = 320, constants = 0} {
// CHECK:         %large = glow_low.alloc {offset = {{[0-9]+}}} : memref<64xf32>
glow_high.placeholder @x : tensor<16xf32> {input}
glow_low.func @gap(@x) {
  %x = glow_low.weight @x : memref<16xf32>
  %a = glow_low.alloc : memref<32xf32>
  %b = glow_low.alloc : memref<16xf32>
  %c = glow_low.alloc : memref<32xf32>
  glow_low.neg @out %b, @in %x
  glow_low.dealloc @out %a
  glow_low.dealloc @out %c
  %large = glow_low.alloc : memref<64xf32>
  glow_low.tile @out %large, @in %b {repeats = [4]}
  glow_low.dealloc @out %b
  glow_low.dealloc @out %large
}

// -----

// Buffers without elements take no memory, wherever they lie.

// CHECK-LABEL: glow_low.func @empty(@x) attributes {activations = 64, activations_bound = 64, constants = 0} {
glow_high.placeholder @x : tensor<4xf32> {input}
glow_low.func @empty(@x) {
  %x = glow_low.weight @x : memref<4xf32>
  %a = glow_low.alloc : memref<4xf32>
  %none = glow_low.alloc : memref<0x4xf32>
  glow_low.neg @out %a, @in %x
  glow_low.dealloc @out %none
  glow_low.dealloc @out %a
}

// -----

// Each function has regions of its own.

// CHECK-LABEL: glow_low.func @first() attributes {activations = 64, activations_bound = 64, constants = 64} {
// CHECK-LABEL: glow_low.func @second() attributes {activations = 0, activations_bound = 0, constants = 64} {
// CHECK-NEXT:    glow_low.weight @one {region = "constants", offset = 0}
glow_high.constant @one : tensor<2xf32> {value = dense<1.0> : tensor<2xf32>}
glow_low.func @first() {
  %one = glow_low.weight @one : memref<2xf32>
  %a = glow_low.alloc : memref<2xf32>
  glow_low.neg @out %a, @in %one
  glow_low.dealloc @out %a
}
glow_low.func @second() {
  %one = glow_low.weight @one : memref<2xf32>
}

// -----

// Pointers of 32 bits span 2 GB.

// CHECK-LABEL: glow_low.func @wide(@x) attributes {activations = 2400000000,
// SPAN: @wide has 2,400,000,000 bytes of activations, more than pointers of 32 bits span (hint: {{.*}})
glow_high.placeholder @x : tensor<4xf32> {input}
glow_low.func @wide(@x) {
  %x = glow_low.weight @x : memref<4xf32>
  %a = glow_low.alloc : memref<600000000xf32>
  glow_low.tile @out %a, @in %x {repeats = [150000000]}
  glow_low.dealloc @out %a
}
