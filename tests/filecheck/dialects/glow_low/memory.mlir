// Declarations, allocation, views, copies and fills, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.constant @c : tensor<2xi64> {value = dense<[3, -1]> : tensor<2xi64>}
glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_high.placeholder @s : tensor<4x6xf32> {state}

glow_low.func @declarations(@x, @y, @s) {
  %c = glow_low.weight @c : memref<2xi64>
  %x = glow_low.weight @x : memref<4x6xf32>
  %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  %s = glow_low.weight @s {mutable, region = "bindings", offset = 2} : memref<4x6xf32>
}

glow_low.func @program(@in %x: memref<4x6xf32>, @out %y: memref<4x6xf32>) {
  %a = glow_low.alloc : memref<4x6xf32>
  %b = glow_low.alloc {offset = 64} : memref<2x3xf32, strided<[8, 1]>>
  glow_low.copy @out %a, @in %x
  %v = glow_low.view %a : memref<4x6xf32> to memref<2x3xf32, strided<[12, 2], offset: 7>>
  %w = glow_low.view %v : memref<2x3xf32, strided<[12, 2], offset: 7>> to memref<24xf32>
  glow_low.copy @out %b, @in %v {kernel = "copy"}
  glow_low.fill @out %b, @out %v {value = -1.5}
  glow_low.dealloc @out %b
  glow_low.copy @out %y, @in %a
  glow_low.dealloc @out %a
}

// Packed state, and the function that makes it.
glow_high.placeholder @momentum : tensor<2x3xf32> {state}
glow_high.placeholder @momentum.packed : tensor<3x2xf32> {packed_by = @pack_momentum}
glow_low.func @pack_momentum(@momentum, @momentum.packed) {
  %plain = glow_low.weight @momentum {mutable} : memref<2x3xf32>
  %packed = glow_low.weight @momentum.packed {mutable} : memref<3x2xf32>
  glow_low.pack @out %packed, @in %plain {layout = {form = "panels", shape = [2, 3], panel = 1}, kernel = "pack"}
  %columns = glow_low.view %plain : memref<2x3xf32> to memref<3x2xf32, strided<[1, 3]>>
  glow_low.copy @out %packed, @in %columns
}
