// Buffers of sizes that are known at run time only: what is refused.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: @fine
glow_low.func @fine(@in %x: memref<4xf32>, @out %y: memref<4xf32>) {
  glow_low.relu @out %y, @in %x
}

// -----

glow_low.func @f(@in %x: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>, @out %y: memref<64x4xf32>) {
  // expected-error@+1 {{a view keeps axes whose size is known at run time only}}
  %0 = glow_low.view %y : memref<64x4xf32> to memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>
  glow_low.relu @out %0, @in %x
}
