// A result takes the buffer of an operand that dies.

// RUN: glow-opt %s -p share-buffers,verify-low --split-input-file | filecheck %s

// CHECK-LABEL: glow_low.func @chain(
// CHECK:         %a = glow_low.alloc
// CHECK-NOT:     glow_low.alloc
// CHECK:         glow_low.softmax @out %a, @in %x
// CHECK-NEXT:    glow_low.relu @out %a, @in %a
// CHECK-NEXT:    glow_low.add @out %a, @in %x, @in %a
// CHECK-NEXT:    glow_low.copy @out %y, @in %a
// CHECK-NEXT:    glow_low.dealloc @out %a
// CHECK-NEXT:  }
glow_low.func @chain(@in %x: memref<4xf32>, @out %y: memref<4xf32>) {
  %a = glow_low.alloc : memref<4xf32>
  %b = glow_low.alloc : memref<4xf32>
  %c = glow_low.alloc : memref<4xf32>
  glow_low.softmax @out %a, @in %x
  glow_low.relu @out %b, @in %a
  glow_low.add @out %c, @in %x, @in %b
  glow_low.copy @out %y, @in %c
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
  glow_low.dealloc @out %c
}

// -----

// Through views, and where the allocations have other shapes.

// CHECK-LABEL: glow_low.func @views(
// CHECK:         %a = glow_low.alloc : memref<2x2xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_low.view %a : memref<2x2xf32> to memref<4xf32>
// CHECK:         glow_low.relu @out %[[B]], @in %[[V:.*]]
// CHECK-NEXT:    glow_low.copy @out %y, @in %[[B]]
// CHECK-NEXT:    glow_low.dealloc @out %a
glow_low.func @views(@in %x: memref<2x2xf32>, @out %y: memref<4xf32>) {
  %b = glow_low.alloc : memref<4xf32>
  %a = glow_low.alloc : memref<2x2xf32>
  glow_low.softmax @out %a, @in %x
  %v = glow_low.view %a : memref<2x2xf32> to memref<4xf32>
  glow_low.relu @out %b, @in %v
  glow_low.copy @out %y, @in %b
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
}

// -----

// A stack may where both are walked alike, and only one result takes the buffer.

// CHECK-LABEL: glow_low.func @stack(
// CHECK:         %a = glow_low.alloc
// CHECK-NEXT:    %c = glow_low.alloc
// CHECK-NOT:     glow_low.alloc
// CHECK:         glow_low.stack @out %a, @out %c, @in %a
glow_low.func @stack(@in %x: memref<4x4xf32>, @out %y: memref<4x4xf32>) {
  %a = glow_low.alloc : memref<4x4xf32>
  %b = glow_low.alloc : memref<4x4xf32>
  %c = glow_low.alloc : memref<4x4xf32>
  glow_low.softmax @out %a, @in %x
  glow_low.stack @out %b, @out %c, @in %a {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%0: f32):
    glow_low.yield %0, %0 : f32, f32
  }
  glow_low.matmul @out %y, @in %b, @in %c
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
  glow_low.dealloc @out %c
}

// -----

// None of these: a transposed read, an operand read again, another size, another read of the same buffer, an input,
// an instruction that does not work in place.

// CHECK-LABEL: glow_low.func @apart(
// CHECK-DAG:     %a = glow_low.alloc
// CHECK-DAG:     %b = glow_low.alloc
// CHECK-DAG:     %c = glow_low.alloc
// CHECK-DAG:     %d = glow_low.alloc
// CHECK-DAG:     %e = glow_low.alloc
// CHECK-DAG:     %f = glow_low.alloc
// CHECK:         glow_low.stack @out %b, @in %a
// CHECK:         glow_low.relu @out %c, @in %b
// CHECK:         glow_low.add @out %d, @in %b, @in %t
// CHECK:         glow_low.neg @out %e, @in %h
// CHECK-NEXT:    glow_low.matmul @out %f, @in %c, @in %d
glow_low.func @apart(@in %x: memref<4x4xf32>, @out %y: memref<4x4xf32>, @out %z: memref<2x4xf32>) {
  %a = glow_low.alloc : memref<4x4xf32>
  %b = glow_low.alloc : memref<4x4xf32>
  %c = glow_low.alloc : memref<4x4xf32>
  %d = glow_low.alloc : memref<4x4xf32>
  %e = glow_low.alloc : memref<2x4xf32>
  %f = glow_low.alloc : memref<4x4xf32>
  glow_low.softmax @out %a, @in %x
  glow_low.stack @out %b, @in %a {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%0: f32):
    glow_low.yield %0 : f32
  }
  glow_low.relu @out %c, @in %b
  %t = glow_low.view %b : memref<4x4xf32> to memref<4x4xf32, strided<[1, 4]>>
  glow_low.add @out %d, @in %b, @in %t
  %h = glow_low.view %d : memref<4x4xf32> to memref<2x4xf32>
  glow_low.neg @out %e, @in %h
  glow_low.matmul @out %f, @in %c, @in %d
  glow_low.copy @out %y, @in %f
  glow_low.copy @out %z, @in %e
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
  glow_low.dealloc @out %c
  glow_low.dealloc @out %d
  glow_low.dealloc @out %e
  glow_low.dealloc @out %f
}

// -----

// A residual operand of an epilogue, walked as the result is; not one that is also read otherwise.

// CHECK-LABEL: glow_low.func @epilogue(
// CHECK:         glow_low.matmul @out %a, @in %x, @in %x epilogue(@in %a)
// CHECK:         glow_low.matmul @out %c, @in %a, @in %x epilogue(@in %a)
glow_low.func @epilogue(@in %x: memref<4x4xf32>, @out %y: memref<4x4xf32>) {
  %a = glow_low.alloc : memref<4x4xf32>
  %b = glow_low.alloc : memref<4x4xf32>
  %c = glow_low.alloc : memref<4x4xf32>
  glow_low.softmax @out %a, @in %x
  glow_low.matmul @out %b, @in %x, @in %x epilogue(@in %a) [affine_map<(d0, d1) -> (d0, d1)>] {
  ^bb0(%0: f32, %1: f32):
    %2 = arith.addf %0, %1 : f32
    glow_low.yield %2 : f32
  }
  glow_low.matmul @out %c, @in %b, @in %x epilogue(@in %b) [affine_map<(d0, d1) -> (d0, d1)>] {
  ^bb0(%0: f32, %1: f32):
    %2 = arith.addf %0, %1 : f32
    glow_low.yield %2 : f32
  }
  glow_low.copy @out %y, @in %c
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
  glow_low.dealloc @out %c
}

// -----

// State that leads to its new value in two steps is changed in its place.

glow_high.placeholder @memory : tensor<9x4xf32> {state}
glow_high.placeholder @i : tensor<1x1xi64> {input}
glow_high.placeholder @u : tensor<1x4xf32> {input}

// CHECK-LABEL: glow_low.func @state(
// CHECK-NOT:     glow_low.alloc
// CHECK:         glow_low.scatter_nd @out %m, @in %m, @in %i, @in %u
// CHECK-NEXT:    glow_low.scatter_nd @out %m, @in %m, @in %i, @in %u
// CHECK-NEXT:  }
glow_low.func @state(@i, @u, @memory) {
  %m = glow_low.weight @memory {mutable} : memref<9x4xf32>
  %i = glow_low.weight @i : memref<1x1xi64>
  %u = glow_low.weight @u : memref<1x4xf32>
  %a = glow_low.alloc : memref<9x4xf32>
  glow_low.scatter_nd @out %a, @in %m, @in %i, @in %u
  glow_low.scatter_nd @out %m, @in %a, @in %i, @in %u
  glow_low.dealloc @out %a
}

// CHECK-LABEL: glow_low.func @reads_the_old_value(
// CHECK:         glow_low.scatter_nd @out %a, @in %m, @in %i, @in %u
// CHECK-NEXT:    glow_low.gather @out %b, @in %m, @in %i
// CHECK-NEXT:    glow_low.scatter_nd @out %m, @in %a, @in %i, @in %c
glow_low.func @reads_the_old_value(@i, @u, @memory) {
  %m = glow_low.weight @memory {mutable} : memref<9x4xf32>
  %i = glow_low.weight @i : memref<1x1xi64>
  %u = glow_low.weight @u : memref<1x4xf32>
  %a = glow_low.alloc : memref<9x4xf32>
  %b = glow_low.alloc : memref<1x1x4xf32>
  %c = glow_low.view %b : memref<1x1x4xf32> to memref<1x4xf32>
  glow_low.scatter_nd @out %a, @in %m, @in %i, @in %u
  glow_low.gather @out %b, @in %m, @in %i
  glow_low.scatter_nd @out %m, @in %a, @in %i, @in %c
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
}

// -----

// An operand that dies where a scatter writes an output for the first time lies in the output; not where the output is
// written earlier, or where the operand is used later. What copies nothing writes where it did.

// CHECK-LABEL: glow_low.func @in_output(
// CHECK-NOT:     glow_low.alloc
// CHECK:         glow_low.splat @out %y
// CHECK-NEXT:    glow_low.scatter_nd @out %y, @in %y, @in %i, @in %u
// CHECK-NEXT:  }
glow_low.func @in_output(@in %i: memref<2x1xi64>, @in %u: memref<2xf32>, @out %y: memref<4xf32>) {
  %a = glow_low.alloc : memref<4xf32>
  glow_low.splat @out %a {value = 0.0}
  glow_low.scatter_nd @out %y, @in %a, @in %i, @in %u {reduction = "add"}
  glow_low.dealloc @out %a
}

// CHECK-LABEL: glow_low.func @not_in_output(
// CHECK:         %a = glow_low.alloc
// CHECK:         glow_low.scatter_nd @out %y, @in %a
// CHECK-NEXT:    glow_low.relu @out %z, @in %a
glow_low.func @not_in_output(@in %x: memref<4xf32>, @in %i: memref<2x1xi64>, @in %u: memref<2xf32>, @out %y: memref<4xf32>, @out %z: memref<4xf32>) {
  %a = glow_low.alloc : memref<4xf32>
  glow_low.softmax @out %a, @in %x
  glow_low.scatter_nd @out %y, @in %a, @in %i, @in %u {reduction = "add"}
  glow_low.relu @out %z, @in %a
  glow_low.dealloc @out %a
}

// CHECK-LABEL: glow_low.func @written_before(
// CHECK:         %a = glow_low.alloc
// CHECK:         glow_low.scatter_nd @out %y, @in %a
glow_low.func @written_before(@in %x: memref<4xf32>, @in %i: memref<2x1xi64>, @in %u: memref<2xf32>, @out %y: memref<4xf32>, @out %z: memref<4xf32>) {
  %a = glow_low.alloc : memref<4xf32>
  %b = glow_low.alloc : memref<4xf32>
  glow_low.softmax @out %y, @in %x
  glow_low.softmax @out %a, @in %x
  glow_low.softmax @out %b, @in %y
  glow_low.scatter_nd @out %y, @in %a, @in %i, @in %u {reduction = "add"}
  glow_low.softmax @out %z, @in %b
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
}
