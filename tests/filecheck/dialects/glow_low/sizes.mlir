// Buffers of sizes that are known at run time only: their types tell the symbols, and views keep these axes.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s
// RUN: glow-opt %s -p verify-low | filecheck %s

// CHECK: glow_low.func @dense(@in %x: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>, @out %y: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>) {
glow_low.func @dense(@in %x: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>, @out %y: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>) {
  // CHECK-NEXT: glow_low.relu @out %y, @in %x
  glow_low.relu @out %y, @in %x
}

// CHECK: glow_low.func @parts
glow_low.func @parts(@in %x: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>, @out %y: memref<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>>) {
  // CHECK-NEXT: %left = glow_low.view %y : memref<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>> to memref<?x4xf32, strided<[8, 1]>, #glow.sizes<[batch], batch = 1 to 64>>
  %left = glow_low.view %y : memref<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>> to memref<?x4xf32, strided<[8, 1]>, #glow.sizes<[batch], batch = 1 to 64>>
  // CHECK-NEXT: %right = glow_low.view %y : memref<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>> to memref<?x4xf32, strided<[8, 1], offset: 4>, #glow.sizes<[batch], batch = 1 to 64>>
  %right = glow_low.view %y : memref<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>> to memref<?x4xf32, strided<[8, 1], offset: 4>, #glow.sizes<[batch], batch = 1 to 64>>
  glow_low.copy @out %left, @in %x
  glow_low.relu @out %right, @in %x
}

// CHECK: glow_low.func @several
glow_low.func @several(@in %x: memref<?x?xf32, #glow.sizes<[batch, length + 1], batch = 1 to 64, length = 0 to 9>>, @out %y: memref<?xf32, #glow.sizes<[batch], batch = 1 to 64>>) {
  // CHECK-NEXT: %0 = glow_low.alloc : memref<?x?xf32, #glow.sizes<[batch, length + 1], batch = 1 to 64, length = 0 to 9>>
  %0 = glow_low.alloc : memref<?x?xf32, #glow.sizes<[batch, length + 1], batch = 1 to 64, length = 0 to 9>>
  glow_low.softmax @out %0, @in %x
  glow_low.reduce_max @out %y, @in %0 {axes = [1], keepdims = false}
  glow_low.dealloc @out %0
}

// CHECK: glow_low.func @numbers
glow_low.func @numbers(@in %x: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>, @out %y: memref<2xi64>) {
  // CHECK-NEXT: glow_low.shape @out %y {sizes = #glow.sizes<[batch, 4], batch = 1 to 64>}
  glow_low.shape @out %y {sizes = #glow.sizes<[batch, 4], batch = 1 to 64>}
}

// CHECK: glow_low.func @prefix
glow_low.func @prefix(@in %x: memref<64x4xf32>, @in %rows_of: memref<?xf32, #glow.sizes<[batch], batch = 1 to 64>>, @out %y: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>) {
  // CHECK-NEXT: %rows = glow_low.view %x : memref<64x4xf32> to memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %rows = glow_low.view %x : memref<64x4xf32> to memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>
  glow_low.copy @out %y, @in %rows
}

// CHECK: glow_low.func @bound
glow_low.func @bound(@in %x: memref<9x4xf32>, @in %count: memref<i64>, @out %y: memref<?x4xf32, #glow.sizes<[found], found = 0 to 9>>) {
  // CHECK-NEXT: glow_low.bind_symbol @in %count {symbol = #glow.sizes<[found], found = 0 to 9>}
  glow_low.bind_symbol @in %count {symbol = #glow.sizes<[found], found = 0 to 9>}
  %rows = glow_low.view %x : memref<9x4xf32> to memref<?x4xf32, #glow.sizes<[found], found = 0 to 9>>
  glow_low.relu @out %y, @in %rows
}
