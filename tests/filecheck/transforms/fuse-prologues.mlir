// A stack becomes the prologue of the instruction that alone reads its result.

// RUN: glow-opt %s -p 'assign-target{target=avx2},fuse-prologues,shorten-lifetimes,verify-low' --split-input-file | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},fuse-prologues' --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// The sum of products of two tensors is one loop.

// CHECK-LABEL: glow_low.func @dot(
// CHECK-NOT:     glow_low.alloc
// CHECK:         glow_low.reduce_sum @out %y, @in %a {axes = [1]} prologue(@in %b) [affine_map<(d0, d1) -> (d0, d1)>] {
// CHECK-NEXT:    ^{{.*}}(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT:      %[[PRODUCT:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT:      glow_low.yield %[[PRODUCT]] : f32
// CHECK-NOT:     glow_low.stack

// LOCATIONS: glow_low.reduce_sum
// LOCATIONS: } loc(fused["product", "sum"])
glow_low.func @dot(@in %a: memref<4x8xf32>, @in %b: memref<4x8xf32>, @out %y: memref<4x1xf32>) {
  %0 = glow_low.alloc : memref<4x8xf32>
  glow_low.stack @out %0, @in %a, @in %b {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%p: f32, %q: f32):
    %1 = arith.mulf %p, %q : f32
    glow_low.yield %1 : f32
  } loc("product")
  glow_low.reduce_sum @out %y, @in %0 {axes = [1]} loc("sum")
  glow_low.dealloc @out %0
}

// -----

// A factor a channel in front of a convolution whose kernel has one element; the source lives until then.

// CHECK-LABEL: glow_low.func @scaled(
// CHECK:         glow_low.softmax @out %[[A:.*]], @in %x
// CHECK:         glow_low.conv @out %y, @in %[[A]], @in %f prologue(@in %{{.*}}) [affine_map<(d0, d1, d2, d3) -> (d0, 0, 0, d3)>] {
// CHECK:         glow_low.dealloc @out %[[A]]
glow_low.func @scaled(@in %x: memref<1x4x4x2xf32>, @in %s: memref<2xf32>, @in %f: memref<3x1x1x2xf32>, @out %y: memref<1x4x4x3xf32>) {
  %0 = glow_low.alloc : memref<1x4x4x2xf32>
  glow_low.softmax @out %0, @in %x {axis = 3}
  %1 = glow_low.alloc : memref<1x4x4x2xf32>
  glow_low.stack @out %1, @in %s, @in %0 {maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterators = ["parallel", "parallel", "parallel", "parallel"]} {
  ^bb0(%p: f32, %q: f32):
    %2 = arith.mulf %q, %p : f32
    glow_low.yield %2 : f32
  }
  glow_low.dealloc @out %0
  glow_low.conv @out %y, @in %1, @in %f
  glow_low.dealloc @out %1
}

// -----

// Not in front of a larger kernel, which reads elements several times; not where the result has two readers.

// CHECK-LABEL: glow_low.func @kept(
// CHECK-NOT:     prologue
glow_low.func @kept(@in %x: memref<1x4x4x2xf32>, @in %f: memref<3x2x2x2xf32>, @out %y: memref<1x3x3x3xf32>, @out %a: memref<1x4x4x1xf32>, @out %b: memref<1x4x4x1xf32>) {
  %0 = glow_low.alloc : memref<1x4x4x2xf32>
  glow_low.stack @out %0, @in %x {maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterators = ["parallel", "parallel", "parallel", "parallel"]} {
  ^bb0(%p: f32):
    %1 = math.absf %p : f32
    glow_low.yield %1 : f32
  }
  glow_low.conv @out %y, @in %0, @in %f
  glow_low.dealloc @out %0
  %2 = glow_low.alloc : memref<1x4x4x2xf32>
  glow_low.stack @out %2, @in %x {maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterators = ["parallel", "parallel", "parallel", "parallel"]} {
  ^bb0(%q: f32):
    %3 = arith.negf %q : f32
    glow_low.yield %3 : f32
  }
  glow_low.reduce_sum @out %a, @in %2 {axes = [3]}
  glow_low.reduce_max @out %b, @in %2 {axes = [3]}
  glow_low.dealloc @out %2
}

// -----

// Nor where a source changes before the instruction runs.

// CHECK-LABEL: glow_low.func @changed(
// CHECK-NOT:     prologue
glow_high.placeholder @x : tensor<4x8xf32> {input}
glow_high.placeholder @s : tensor<4x8xf32> {state}
glow_high.placeholder @y : tensor<4x1xf32> {output}
glow_low.func @changed(@x, @s, @y) {
  %x = glow_low.weight @x : memref<4x8xf32>
  %s = glow_low.weight @s {mutable} : memref<4x8xf32>
  %y = glow_low.weight @y {mutable} : memref<4x1xf32>
  %0 = glow_low.alloc : memref<4x8xf32>
  glow_low.stack @out %0, @in %s {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%p: f32):
    %1 = arith.negf %p : f32
    glow_low.yield %1 : f32
  }
  glow_low.copy @out %s, @in %x
  glow_low.reduce_sum @out %y, @in %0 {axes = [1]}
  glow_low.dealloc @out %0
}
