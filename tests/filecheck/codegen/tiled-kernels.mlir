// What a kernel does not execute whole it executes tile by tile: bodies as stacks, sizes that are known at run time only, and parts.

// RUN: glow-opt %s -p 'assign-target{target=avx2},fuse-epilogues,fuse-prologues,shorten-lifetimes,select,verify-selected' --split-input-file | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target="avx2,threads=3"},select,verify-selected' --split-input-file | filecheck %s --check-prefix=PARTS
// RUN: glow-opt %s -p 'assign-target{target=avx2},fuse-epilogues,select,allocate,glow-low-to-scf{pool=false}' --split-input-file | filecheck %s --check-prefix=CODE

// The epilogue of a reversal reads a tile from scratch; that of a softmax is applied in registers.

// CHECK-LABEL: glow_low.func @gated(
// CHECK:         %[[TILE:.*]] = glow_low.alloc : memref<1x32x64xf32>
// CHECK-NEXT:    glow_low.reverse_sequence @out %y, @in %x, @in %n, @scratch %[[TILE]] {batch_axis = 0, time_axis = 1, kernel = "reverse-sequence-tiled", tiles = {tile = 1}} epilogue(@in %g)
// CHECK-NOT:     glow_low.stack

// CODE-LABEL: llvm.func internal @reverse_sequence.1x32x64
// CODE-LABEL: llvm.func internal @stack.1x32x64
// CODE-LABEL: llvm.func internal @reverse_sequence_tiled.64x32x64
// CODE:         llvm.call @reverse_sequence.1x32x64
// CODE:         llvm.call @stack.1x32x64
glow_low.func @gated(@in %x: memref<64x32x64xf32>, @in %n: memref<64xi64>, @in %g: memref<64x32x64xf32>, @out %y: memref<64x32x64xf32>) {
  %0 = glow_low.alloc : memref<64x32x64xf32>
  glow_low.reverse_sequence @out %0, @in %x, @in %n {batch_axis = 0, time_axis = 1}
  glow_low.stack @out %y, @in %0, @in %g {maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterators = ["parallel", "parallel", "parallel"]} {
  ^bb0(%p: f32, %q: f32):
    %1 = arith.mulf %p, %q : f32
    glow_low.yield %1 : f32
  }
  glow_low.dealloc @out %0
}

// -----

// A prologue fills a tile of the operand, of which the softmax reads each element three times.

// CHECK-LABEL: glow_low.func @scaled(
// CHECK:         glow_low.softmax @out %y, @in %x, @scratch %{{.*}} {axis = 1, kernel = "generic-tiled", tiles = {tile = {{[0-9]+}}, lines = {{[0-9]+}}}} prologue {
glow_low.func @scaled(@in %x: memref<256x64xf32>, @out %y: memref<256x64xf32>) {
  %0 = glow_low.alloc : memref<256x64xf32>
  glow_low.stack @out %0, @in %x {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%p: f32):
    %1 = arith.addf %p, %p : f32
    glow_low.yield %1 : f32
  }
  glow_low.softmax @out %y, @in %0 {axis = 1}
  glow_low.dealloc @out %0
}

// -----

// The exponentials of a line are in scratch, since an epilogue stores something else in the result.

// CHECK-LABEL: glow_low.func @weighed(
// CHECK:         glow_low.softmax @out %y, @in %x, @scratch %{{.*}} {axis = 1, kernel = "generic", tiles = {lines = {{[0-9]+}}}} epilogue(@in %g)
glow_low.func @weighed(@in %x: memref<256x64xf32>, @in %g: memref<256x64xf32>, @out %y: memref<256x64xf32>) {
  %0 = glow_low.alloc : memref<256x64xf32>
  glow_low.softmax @out %0, @in %x {axis = 1}
  glow_low.stack @out %y, @in %0, @in %g {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%p: f32, %q: f32):
    %1 = arith.mulf %p, %q : f32
    glow_low.yield %1 : f32
  }
  glow_low.dealloc @out %0
}

// -----

// What is one tile gains nothing: the stack stays.

// CHECK-LABEL: glow_low.func @whole(
// CHECK:         glow_low.reverse_sequence {{.*}}kernel = "reverse-sequence"}
// CHECK:         glow_low.stack
glow_low.func @whole(@in %x: memref<64x64xf32>, @in %n: memref<64xi64>, @out %y: memref<64x64xf32>) {
  %0 = glow_low.alloc : memref<64x64xf32>
  glow_low.reverse_sequence @out %0, @in %x, @in %n {batch_axis = 1, time_axis = 0}
  glow_low.stack @out %y, @in %0 {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%p: f32):
    %1 = arith.negf %p : f32
    glow_low.yield %1 : f32
  }
  glow_low.dealloc @out %0
}

// -----

// A kernel without an axis to cut has tiles as parts, one for each thread and more.

// CHECK-LABEL: glow_low.func @rows(
// CHECK:         glow_low.reverse_sequence {{.*}}kernel = "reverse-sequence"}

// PARTS-LABEL: glow_low.func @rows(
// PARTS:         glow_low.reverse_sequence {{.*}}kernel = "reverse-sequence-tiled", tiles = {tile = {{[0-9]+}}}, partitions = {tiles = 48}
glow_low.func @rows(@in %x: memref<256x16x256xf32>, @in %n: memref<256xi64>, @out %y: memref<256x16x256xf32>) {
  glow_low.reverse_sequence @out %y, @in %x, @in %n {batch_axis = 0, time_axis = 1}
}

// -----

// Rows of a batch that is known at run time only: as many tiles of one.

// CHECK-LABEL: glow_low.func @counts(
// CHECK:         glow_low.tf_idf_vectorizer {{.*}}kernel = "ngrams-tiled", tiles = {tile = {{[0-9]+}}}
glow_low.func @counts(@in %x: memref<?x16xi64, #glow.sizes<[batch], batch = 1 to 8>>, @in %pool: memref<3x2xi64>, @out %y: memref<?x3xf32, #glow.sizes<[batch], batch = 1 to 8>>) {
  glow_low.tf_idf_vectorizer @out %y, @in %x, @in none, @in %pool {size = 3}
}

// -----

// A product is computed with each element that is gathered alone, a function in vectors of a tile.

// CHECK-LABEL: glow_low.func @elements(
// CHECK:         glow_low.gather_elements {{.*}}kernel = "generic"} epilogue {
// CHECK:         glow_low.gather_elements {{.*}}kernel = "generic-tiled", tiles = {tile = {{[0-9]+}}}} epilogue {
glow_low.func @elements(@in %x: memref<12x128x128xf32>, @in %i: memref<12x128x128xi64>, @out %y: memref<12x128x128xf32>, @out %z: memref<12x128x128xf32>) {
  %0 = glow_low.alloc : memref<12x128x128xf32>
  glow_low.gather_elements @out %0, @in %x, @in %i {axis = 2}
  glow_low.stack @out %y, @in %0 {maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterators = ["parallel", "parallel", "parallel"]} {
  ^bb0(%p: f32):
    %1 = arith.mulf %p, %p : f32
    glow_low.yield %1 : f32
  }
  glow_low.dealloc @out %0
  %2 = glow_low.alloc : memref<12x128x128xf32>
  glow_low.gather_elements @out %2, @in %x, @in %i {axis = 2}
  glow_low.stack @out %z, @in %2 {maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterators = ["parallel", "parallel", "parallel"]} {
  ^bb0(%p: f32):
    %3 = math.exp %p : f32
    glow_low.yield %3 : f32
  }
  glow_low.dealloc @out %2
}
