// Sizes that are known at run time only, from operators to places in memory: these are for the largest.

// RUN: glow-opt %s -p 'glow-high-to-glow-low,verify-low' | filecheck %s
// RUN: glow-opt %s -p 'glow-high-to-glow-low,shorten-lifetimes,allocate,verify-allocated' | filecheck %s --check-prefix=CHECK-ALLOCATED
// RUN: glow-opt %s -p 'assign-target{target=avx2},glow-high-to-glow-low,select,verify-selected' | filecheck %s --check-prefix=CHECK-SELECT
// RUN: glow-opt %s -p 'assign-target{target=avx2},glow-high-to-glow-low,stack,select,allocate,glow-low-to-scf' | filecheck %s --check-prefix=CHECK-LLVM

// CHECK: glow_low.func @main
// CHECK-ALLOCATED: attributes {activations = 4096, activations_bound = 4096, constants = 128}
// CHECK-SELECT: glow_low.matmul @out %0, @in %x, @in %w {kernel = "matmul", tiles = {rows = {{[0-9]+}}, prefetch = 0}, packing = {{.*}}}
// CHECK-SELECT: glow_low.relu @out %1, @in %0 {kernel = "stack"}

// The entry finds the symbol in the array behind its two bindings, and hands it to the functions of instructions.
// CHECK-LLVM: llvm.func internal @matmul.64x8({{.*}}: i64)
// CHECK-LLVM: llvm.func @main
// CHECK-LLVM: llvm.load {{.*}} -> i64
// CHECK-LLVM: llvm.call @matmul.64x8
glow_high.constant @w : tensor<4x8xf32> {value = dense<0.5> : tensor<4x8xf32>}
glow_high.func @main(%x: tensor<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>) -> tensor<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>> {
  %w = glow_high.get @w : tensor<4x8xf32>
  // CHECK: %0 = glow_low.alloc : memref<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  // CHECK-NEXT: glow_low.matmul @out %0, @in %x, @in %w
  // CHECK-NOT: samples
  %0 = glow_high.matmul %x, %w : tensor<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  // CHECK: glow_low.relu
  // CHECK-ALLOCATED: glow_low.alloc {offset = 0} : memref<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  // CHECK-ALLOCATED: glow_low.alloc {offset = 2048} : memref<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %1 = glow_high.relu %0 : tensor<?x8xf32, #glow.sizes<[batch], batch = 1 to 64>>
  glow_high.return %1
}

// Rows of a buffer for the largest sizes lie apart: where axes merge, they are copied.

// CHECK-LABEL: glow_low.func @merged(
glow_high.func @merged(%x: tensor<?x?x4xf32, #glow.sizes<[batch, length], batch = 1 to 64, length = 1 to 8>>) -> tensor<?x4xf32, #glow.sizes<[batch * length], batch = 1 to 64, length = 1 to 8>> {
  // CHECK: glow_low.reshape @out %0, @in %x {shape = #glow.sizes<[batch * length, 4], batch = 1 to 64, length = 1 to 8>}
  %0 = glow_high.reshape %x {shape = #glow.sizes<[batch * length, 4], batch = 1 to 64, length = 1 to 8>} : tensor<?x4xf32, #glow.sizes<[batch * length], batch = 1 to 64, length = 1 to 8>>
  glow_high.return %0
}
