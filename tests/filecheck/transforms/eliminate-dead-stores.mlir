// What is never read is not written.

// RUN: glow-opt %s -p eliminate-dead-stores,verify-low --split-input-file | filecheck %s

// A chain that nothing reads goes; so does a store to an output that is overwritten before anyone looks.

// CHECK-LABEL: glow_low.func @unread(
// CHECK-NOT:     glow_low.tanh
// CHECK-NOT:     glow_low.neg
// CHECK-NOT:     glow_low.exp
// CHECK:         glow_low.relu @out %y, @in %x
// CHECK-NEXT:    glow_low.dealloc
glow_low.func @unread(@in %x: memref<4xf32>, @out %y: memref<4xf32>) {
  %a = glow_low.alloc : memref<4xf32>
  %b = glow_low.alloc : memref<4xf32>
  glow_low.tanh @out %a, @in %x
  glow_low.neg @out %b, @in %a
  glow_low.exp @out %y, @in %x
  glow_low.relu @out %y, @in %x
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
}

// -----

// Parts: only what is overwritten as a whole, or lies apart from what is read, is dead.

// CHECK-LABEL: glow_low.func @parts(
// CHECK:         glow_low.tanh @out %left
// CHECK-NOT:     glow_low.neg
// CHECK-NEXT:    glow_low.relu @out %a
// CHECK-NEXT:    glow_low.exp @out %middle
// CHECK-NEXT:    glow_low.sqrt @out %y
glow_low.func @parts(@in %x: memref<2x2xf32>, @in %w: memref<2x4xf32>, @out %y: memref<2x2xf32>, @out %z: memref<2x4xf32>) {
  %b = glow_low.alloc : memref<2x4xf32>
  %left = glow_low.view %b : memref<2x4xf32> to memref<2x2xf32, strided<[4, 1]>>
  %right = glow_low.view %b : memref<2x4xf32> to memref<2x2xf32, strided<[4, 1], offset: 2>>
  %a = glow_low.alloc : memref<2x4xf32>
  %middle = glow_low.view %a : memref<2x4xf32> to memref<2x2xf32, strided<[4, 1], offset: 1>>
  glow_low.tanh @out %left, @in %x
  glow_low.neg @out %right, @in %x
  glow_low.relu @out %a, @in %w
  glow_low.exp @out %middle, @in %x
  glow_low.sqrt @out %y, @in %left
  glow_low.copy @out %z, @in %a
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
}

// -----

// State is seen by the next call; an instruction of which one result is read stays.

// CHECK-LABEL: glow_low.func @observable(
// CHECK:         glow_low.copy @out %s, @in %x
// CHECK-NEXT:    glow_low.top_k
// CHECK-NEXT:    glow_low.copy @out %y
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.placeholder @y : tensor<2xi64> {output}
glow_low.func @observable(@x, @s, @y) {
  %x = glow_low.weight @x : memref<4xf32>
  %s = glow_low.weight @s {mutable} : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<2xi64>
  %a = glow_low.alloc : memref<2xf32>
  %b = glow_low.alloc : memref<2xi64>
  glow_low.copy @out %s, @in %x
  glow_low.top_k @out %a, @out %b, @in %x {k = 2}
  glow_low.copy @out %y, @in %b
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
}
