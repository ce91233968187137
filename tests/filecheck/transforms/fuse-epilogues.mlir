// A stack becomes the epilogue of the instruction whose result it alone reads.

// RUN: glow-opt %s -p 'assign-target{target=avx2},fuse-epilogues,shorten-lifetimes,verify-low' --split-input-file | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},fuse-epilogues' --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// A residual sum and an activation behind a convolution; the sum's temporary goes.

// CHECK-LABEL: glow_low.func @residual(
// CHECK-NOT:     glow_low.alloc
// CHECK:         glow_low.conv @out %y, @in %x, @in %f epilogue(@in %r) [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>] {
// CHECK-NEXT:    ^{{.*}}(%[[SUM:.*]]: f32, %[[R:.*]]: f32):
// CHECK-NEXT:      %[[TOTAL:.*]] = arith.addf %[[R]], %[[SUM]] : f32
// CHECK-NEXT:      %[[ABS:.*]] = math.absf %[[TOTAL]] : f32
// CHECK-NEXT:      glow_low.yield %[[ABS]] : f32
// CHECK-NEXT:    }
// CHECK-NOT:     glow_low.stack

// LOCATIONS: glow_low.conv
// LOCATIONS: } loc(fused["conv", "sum"])
glow_low.func @residual(@in %x: memref<1x4x4x2xf32>, @in %f: memref<3x1x1x2xf32>, @in %r: memref<1x4x4x3xf32>, @out %y: memref<1x4x4x3xf32>) {
  %0 = glow_low.alloc : memref<1x4x4x3xf32>
  glow_low.conv @out %0, @in %x, @in %f loc("conv")
  glow_low.stack @out %y, @in %r, @in %0 {maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterators = ["parallel", "parallel", "parallel", "parallel"]} {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    %2 = math.absf %1 : f32
    glow_low.yield %2 : f32
  } loc("sum")
  glow_low.dealloc @out %0
}

// -----

// The stack sees the result under another shape, with a vector a column and a second target: the planes are views.

// CHECK-LABEL: glow_low.func @reshaped(
// CHECK:         %[[Z:.*]] = glow_low.view %z : memref<4x3xf32> to memref<2x2x3xf32>
// CHECK:         %[[Y:.*]] = glow_low.view %y : memref<12xf32> to memref<2x2x3xf32>
// CHECK:         %[[V:.*]] = glow_low.view %v : memref<3xf32> to memref<1x1x3xf32>
// CHECK-NEXT:    glow_low.matmul @out %[[Z]], @in %a, @in %b epilogue(@out %[[Y]], @in %[[V]]) [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (0, 0, d2)>] {
glow_low.func @reshaped(@in %a: memref<2x2x5xf32>, @in %b: memref<2x5x3xf32>, @in %v: memref<3xf32>, @out %y: memref<12xf32>, @out %z: memref<4x3xf32>) {
  %0 = glow_low.alloc : memref<2x2x3xf32>
  glow_low.matmul @out %0, @in %a, @in %b
  %1 = glow_low.view %0 : memref<2x2x3xf32> to memref<4x3xf32>
  %2 = glow_low.view %y : memref<12xf32> to memref<4x3xf32>
  glow_low.stack @out %z, @out %2, @in %1, @in %v {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%x: f32, %w: f32):
    %3 = arith.mulf %x, %w : f32
    glow_low.yield %3, %x : f32, f32
  }
  glow_low.dealloc @out %0
}

// -----

// Of two producers the later one takes the stack.

// CHECK-LABEL: glow_low.func @later(
// CHECK:         glow_low.matmul @out %[[A:.*]], @in %x, @in %x{{$}}
// CHECK:         glow_low.matmul @out %y, @in %x, @in %x {transpose_right = true} epilogue(@in %[[A]])
glow_low.func @later(@in %x: memref<4x4xf32>, @out %y: memref<4x4xf32>) {
  %0 = glow_low.alloc : memref<4x4xf32>
  %1 = glow_low.alloc : memref<4x4xf32>
  glow_low.matmul @out %0, @in %x, @in %x
  glow_low.matmul @out %1, @in %x, @in %x {transpose_right = true}
  glow_low.stack @out %y, @in %0, @in %1 {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32, %b: f32):
    %2 = arith.subf %a, %b : f32
    glow_low.yield %2 : f32
  }
  glow_low.dealloc @out %0
  glow_low.dealloc @out %1
}

// -----

// Not where the result has another reader, or is read transposed or repeated.

// CHECK-LABEL: glow_low.func @kept(
// CHECK-NOT:     epilogue
glow_low.func @kept(@in %x: memref<4x4xf32>, @out %y: memref<4x4xf32>, @out %z: memref<4x4xf32>, @out %t: memref<4x4xf32>, @out %w: memref<4x4x4xf32>) {
  %0 = glow_low.alloc : memref<4x4xf32>
  glow_low.matmul @out %0, @in %x, @in %x
  glow_low.stack @out %y, @in %0 {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32):
    %1 = arith.negf %a : f32
    glow_low.yield %1 : f32
  }
  glow_low.softmax @out %z, @in %0 {axis = 1}
  glow_low.dealloc @out %0
  %2 = glow_low.alloc : memref<4x4xf32>
  glow_low.matmul @out %2, @in %x, @in %y
  glow_low.stack @out %t, @in %2 {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%b: f32):
    %3 = arith.negf %b : f32
    glow_low.yield %3 : f32
  }
  glow_low.dealloc @out %2
  %4 = glow_low.alloc : memref<4x4xf32>
  glow_low.matmul @out %4, @in %x, @in %z
  glow_low.stack @out %w, @in %4 {maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>], iterators = ["parallel", "parallel", "parallel"]} {
  ^bb0(%c: f32):
    %5 = arith.negf %c : f32
    glow_low.yield %5 : f32
  }
  glow_low.dealloc @out %4
}

// -----

// A producer waits for a source that comes later, unless what it reads is overwritten before.

// CHECK-LABEL: glow_low.func @waits(
// CHECK:         glow_low.softmax @out %s
// CHECK-NEXT:    glow_low.matmul @out %y, @in %x, @in %x epilogue(@in %s)
// CHECK:         glow_low.matmul @out %[[P:.*]], @in %t, @in %x{{$}}
// CHECK-NEXT:    glow_low.softmax @out %t
// CHECK-NEXT:    glow_low.stack @out %z
glow_high.placeholder @x : tensor<4x4xf32> {input}
glow_high.placeholder @s : tensor<4x4xf32> {output}
glow_high.placeholder @t : tensor<4x4xf32> {state}
glow_high.placeholder @y : tensor<4x4xf32> {output}
glow_high.placeholder @z : tensor<4x4xf32> {output}
glow_low.func @waits(@x, @s, @t, @y, @z) {
  %x = glow_low.weight @x : memref<4x4xf32>
  %s = glow_low.weight @s {mutable} : memref<4x4xf32>
  %t = glow_low.weight @t {mutable} : memref<4x4xf32>
  %y = glow_low.weight @y {mutable} : memref<4x4xf32>
  %z = glow_low.weight @z {mutable} : memref<4x4xf32>
  %0 = glow_low.alloc : memref<4x4xf32>
  glow_low.matmul @out %0, @in %x, @in %x
  glow_low.softmax @out %s, @in %x {axis = 1}
  glow_low.stack @out %y, @in %0, @in %s {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    glow_low.yield %1 : f32
  }
  glow_low.dealloc @out %0
  %2 = glow_low.alloc : memref<4x4xf32>
  glow_low.matmul @out %2, @in %t, @in %x
  glow_low.softmax @out %t, @in %x {axis = 0}
  glow_low.stack @out %z, @in %2, @in %t {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%c: f32, %d: f32):
    %3 = arith.addf %c, %d : f32
    glow_low.yield %3 : f32
  }
  glow_low.dealloc @out %2
}

// -----

// Nor for a kernel without epilogues.

// CHECK-LABEL: glow_low.func @without(
// CHECK-NOT:     epilogue
glow_low.func @without(@in %x: memref<4x4xf32>, @in %n: memref<4xi64>, @out %z: memref<4x4xf32>) {
  %2 = glow_low.alloc : memref<4x4xf32>
  glow_low.reverse_sequence @out %2, @in %x, @in %n {batch_axis = 1, time_axis = 0}
  glow_low.stack @out %z, @in %2 {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%c: f32):
    %3 = arith.negf %c : f32
    glow_low.yield %3 : f32
  }
  glow_low.dealloc @out %2
}

// -----

// Nor where the stack reads one buffer in two ways.

// CHECK-LABEL: glow_low.func @twice(
// CHECK-NOT:     epilogue
glow_low.func @twice(@in %x: memref<4x4xf32>, @in %s: memref<4x4xf32>, @out %z: memref<4x4xf32>) {
  %0 = glow_low.alloc : memref<4x4xf32>
  glow_low.matmul @out %0, @in %x, @in %x
  glow_low.stack @out %z, @in %0, @in %s, @in %s {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %1 = arith.addf %b, %c : f32
    %2 = arith.addf %1, %a : f32
    glow_low.yield %2 : f32
  }
  glow_low.dealloc @out %0
}

// -----

// A residual sum behind a product of as many rows as run time tells; one that is repeated for all batches is a plane.

// CHECK-LABEL: glow_low.func @symbols(
// CHECK-NOT:     glow_low.alloc
// CHECK:         glow_low.matmul @out %y, @in %a, @in %b epilogue(@in %r, @in %{{.*}}) [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (0, d1, 0)>] {
// CHECK-NOT:     glow_low.stack
glow_low.func @symbols(@in %a: memref<?x?x5xf32, #glow.sizes<[B, L], B = 1 to 4, L = 1 to 8>>, @in %b: memref<5x3xf32>, @in %r: memref<?x?x3xf32, #glow.sizes<[B, L], B = 1 to 4, L = 1 to 8>>, @in %s: memref<?xf32, #glow.sizes<[L], L = 1 to 8>>, @out %y: memref<?x?x3xf32, #glow.sizes<[B, L], B = 1 to 4, L = 1 to 8>>) {
  %0 = glow_low.alloc : memref<?x?x3xf32, #glow.sizes<[B, L], B = 1 to 4, L = 1 to 8>>
  glow_low.matmul @out %0, @in %a, @in %b
  glow_low.stack @out %y, @in %r, @in %0, @in %s {maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1)>], iterators = ["parallel", "parallel", "parallel"]} {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %1 = arith.addf %u, %v : f32
    %2 = arith.mulf %1, %w : f32
    glow_low.yield %2 : f32
  }
  glow_low.dealloc @out %0
}

// -----

// A step of an optimizer changes a parameter in place: the product stores what the body makes of both.

// CHECK-LABEL: glow_low.func @step(
// CHECK-NOT:     glow_low.alloc
// CHECK:         glow_low.matmul @out %[[W:.*]], @in %x, @in %g epilogue(@in %[[W]]) [affine_map<(d0, d1) -> (d0, d1)>] {
// CHECK-NOT:     glow_low.stack
glow_high.placeholder @x : tensor<4x8xf32> {input}
glow_high.placeholder @g : tensor<8x16xf32> {input}
glow_high.placeholder @w : tensor<4x16xf32> {state}
glow_low.func @step(@x, @g, @w) {
  %x = glow_low.weight @x : memref<4x8xf32>
  %g = glow_low.weight @g : memref<8x16xf32>
  %w = glow_low.weight @w {mutable} : memref<4x16xf32>
  %0 = glow_low.alloc : memref<4x16xf32>
  glow_low.matmul @out %0, @in %x, @in %g
  glow_low.stack @out %w, @in %0, @in %w {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.subf %b, %a : f32
    glow_low.yield %1 : f32
  }
  glow_low.dealloc @out %0
}
