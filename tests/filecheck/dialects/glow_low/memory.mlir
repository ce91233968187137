// Declarations, allocation, views, copies and fills, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

glow_high.constant @c : tensor<2xi64> {value = dense<[3, -1]> : tensor<2xi64>}
glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_high.placeholder @s : tensor<4x6xf32> {state}

// CHECK-LABEL: glow_low.func @declarations(@x, @y, @s)
glow_low.func @declarations(@x, @y, @s) {
  // CHECK-NEXT: %c = glow_low.weight @c : memref<2xi64>
  %c = glow_low.weight @c : memref<2xi64>
  // CHECK-NEXT: %x = glow_low.weight @x : memref<4x6xf32>
  %x = glow_low.weight @x : memref<4x6xf32>
  // CHECK-NEXT: %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  // CHECK-NEXT: %s = glow_low.weight @s {mutable, region = "bindings", offset = 2} : memref<4x6xf32>
  %s = glow_low.weight @s {mutable, region = "bindings", offset = 2} : memref<4x6xf32>
}

// CHECK-LABEL: glow_low.func @program(
glow_low.func @program(@in %x: memref<4x6xf32>, @out %y: memref<4x6xf32>) {
  // CHECK-NEXT: %a = glow_low.alloc : memref<4x6xf32>
  %a = glow_low.alloc : memref<4x6xf32>
  // CHECK-NEXT: %b = glow_low.alloc {offset = 64} : memref<2x3xf32, strided<[8, 1]>>
  %b = glow_low.alloc {offset = 64} : memref<2x3xf32, strided<[8, 1]>>
  // CHECK-NEXT: glow_low.copy @out %a, @in %x
  glow_low.copy @out %a, @in %x
  // CHECK-NEXT: %v = glow_low.view %a : memref<4x6xf32> to memref<2x3xf32, strided<[12, 2], offset: 7>>
  %v = glow_low.view %a : memref<4x6xf32> to memref<2x3xf32, strided<[12, 2], offset: 7>>
  // CHECK-NEXT: %w = glow_low.view %v : memref<2x3xf32, strided<[12, 2], offset: 7>> to memref<24xf32>
  %w = glow_low.view %v : memref<2x3xf32, strided<[12, 2], offset: 7>> to memref<24xf32>
  // CHECK-NEXT: glow_low.copy @out %b, @in %v {kernel = "copy"}
  glow_low.copy @out %b, @in %v {kernel = "copy"}
  // CHECK-NEXT: glow_low.fill @out %b, @out %v {value = -1.5}
  glow_low.fill @out %b, @out %v {value = -1.5}
  // CHECK-NEXT: glow_low.dealloc @out %b
  glow_low.dealloc @out %b
  // CHECK-NEXT: glow_low.copy @out %y, @in %a
  glow_low.copy @out %y, @in %a
  // CHECK-NEXT: glow_low.dealloc @out %a
  glow_low.dealloc @out %a
}

// Packed state, and the function that makes it.
// CHECK: glow_high.placeholder @momentum : tensor<2x3xf32> {state}
glow_high.placeholder @momentum : tensor<2x3xf32> {state}
// CHECK-NEXT: glow_high.placeholder @momentum.packed : tensor<3x2xf32> {packed_by = @pack_momentum}
glow_high.placeholder @momentum.packed : tensor<3x2xf32> {packed_by = @pack_momentum}
// CHECK-NEXT: glow_low.func @pack_momentum(@momentum, @momentum.packed) {
glow_low.func @pack_momentum(@momentum, @momentum.packed) {
  // CHECK-NEXT: %plain = glow_low.weight @momentum {mutable} : memref<2x3xf32>
  %plain = glow_low.weight @momentum {mutable} : memref<2x3xf32>
  // CHECK-NEXT: %packed = glow_low.weight @momentum.packed {mutable} : memref<3x2xf32>
  %packed = glow_low.weight @momentum.packed {mutable} : memref<3x2xf32>
  // CHECK-NEXT: %columns = glow_low.view %plain : memref<2x3xf32> to memref<3x2xf32, strided<[1, 3]>>
  %columns = glow_low.view %plain : memref<2x3xf32> to memref<3x2xf32, strided<[1, 3]>>
  // CHECK-NEXT: glow_low.copy @out %packed, @in %columns
  glow_low.copy @out %packed, @in %columns
}
