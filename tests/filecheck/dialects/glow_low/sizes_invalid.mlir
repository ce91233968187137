// Buffers of sizes that are known at run time only: what is refused.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: @fine
glow_low.func @fine(@in %x: memref<4xf32>, @out %y: memref<4xf32>) {
  glow_low.relu @out %y, @in %x
}

// -----

glow_low.func @f(@in %x: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>, @in %z: memref<?xf32, #glow.sizes<[length], length = 1 to 64>>, @out %y: memref<?x4xf32, #glow.sizes<[length], length = 1 to 64>>) {
  // expected-error@+1 {{@out has type memref<?x4xf32, #glow.sizes<[length], length = 1 to 64>>, but tensor<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>> follows}}
  glow_low.relu @out %y, @in %x
}

// -----

glow_low.func @f(@in %x: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>, @out %y: memref<64x4xf32>) {
  // expected-error@+1 {{a copy's buffers have different shapes}}
  glow_low.copy @out %y, @in %x
}

// -----

glow_low.func @f(@in %x: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>) {
  // expected-error@+1 {{a view stays in what is always there of an axis whose size is known at run time only}}
  %0 = glow_low.view %x : memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>> to memref<8x4xf32>
}

// -----

glow_low.func @f(@in %x: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>, @out %y: memref<64x4xf32>) {
  // expected-error@+1 {{a view keeps axes whose size is known at run time only}}
  %0 = glow_low.view %y : memref<64x4xf32> to memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>
  glow_low.relu @out %0, @in %x
}

// -----

glow_low.func @f(@in %x: memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>) {
  // expected-error@+1 {{the view reaches 257 elements into an allocation of 256}}
  %0 = glow_low.view %x : memref<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>> to memref<?x4xf32, strided<[4, 1], offset: 1>, #glow.sizes<[batch], batch = 1 to 64>>
}

// -----

glow_low.func @f() {
  %0 = glow_low.alloc : memref<8x?xf32, strided<[64, 1]>, #glow.sizes<[batch], batch = 1 to 64>>
  // expected-error@+1 {{a view stays in what is always there of an axis whose size is known at run time only}}
  %1 = glow_low.view %0 : memref<8x?xf32, strided<[64, 1]>, #glow.sizes<[batch], batch = 1 to 64>> to memref<4x?xf32, strided<[64, 1], offset: 3>, #glow.sizes<[batch], batch = 1 to 64>>
}

// -----

glow_low.func @f(@in %x: memref<?x?xf32, #glow.sizes<[batch, length], batch = 1 to 64, length = 1 to 9>>) {
  // expected-error@+1 {{a view stays in what is always there of an axis whose size is known at run time only}}
  %0 = glow_low.view %x : memref<?x?xf32, #glow.sizes<[batch, length], batch = 1 to 64, length = 1 to 9>> to memref<?x1xf32, strided<[9, 1], offset: 1>, #glow.sizes<[batch], batch = 1 to 64>>
}

// -----

// expected-error@+1 {{the symbol batch has no range: batch = 1 to 64}}
glow_low.func @f(@in %x: memref<?x4xf32, #glow.sizes<[batch]>>) {
}

// -----

glow_low.func @f() {
  // expected-error@+1 {{the size '?' that no #glow.sizes tells is known at run time only}}
  %0 = glow_low.alloc : memref<?x4xf32>
}

// -----

glow_low.func @f() {
  // expected-error@+1 {{an allocation is in no memory space of its own}}
  %0 = glow_low.alloc : memref<4x4xf32, #glow.sizes<[batch], batch = 1 to 64>>
}

// -----

glow_low.func @f(@out %y: memref<?xf32, #glow.sizes<[found], found = 0 to 9>>) {
  %0 = glow_low.alloc : memref<?xf32, #glow.sizes<[found], found = 0 to 9>>
  // expected-error@-2 {{glow_low.copy uses the symbol found, which is not bound before}}
  glow_low.copy @out %y, @in %0
}

// -----

glow_low.func @f(@in %x: memref<2xi64>) {
  // expected-error@+1 {{what a symbol is bound to is one element of i64, not memref<2xi64>}}
  glow_low.bind_symbol @in %x {symbol = #glow.sizes<[found], found = 0 to 9>}
}
