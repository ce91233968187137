// Every instruction names its kernel; what no kernel executes is left as it is.

// RUN: glow-opt %s -p 'assign-target{target=avx2},select' | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},select,select' | filecheck %s
// RUN: glow-opt %s -p 'assign-target{backend=interpreter},select' | filecheck %s --check-prefix=INTERPRETER
// RUN: glow-opt %s -p 'assign-target{target=avx2 accuracy=default},select' | filecheck %s --check-prefix=WINOGRAD
// RUN: glow-opt %s -p 'assign-target{target=avx2 accuracy=strict},select' | filecheck %s --check-prefix=STRICT
// RUN: glow-opt %s -p 'assign-target{target=avx2 threads=2},select' | filecheck %s --check-prefix=PARTS
// RUN: glow-opt %s -p 'assign-target{target="avx2,costs.winograd_tiles=6,costs.tile_vectors=3"},select' | filecheck %s --check-prefix=MEASURED
// RUN: glow-opt %s -p 'assign-target{target="avx2,costs.winograd_products=100"},select' | filecheck %s --check-prefix=STRICT
// RUN: not glow-opt %s -p 'assign-target{target=avx2 threads=0},select' 2>&1 | filecheck %s --check-prefix=NO-THREADS
// RUN: not glow-opt %s -p 'assign-target{target=avx2 accuracy=loose},select' 2>&1 | filecheck %s --check-prefix=LOOSE
// RUN: not glow-opt %s -p 'assign-target{backend=no-such-backend},select' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not glow-opt %s -p 'assign-target{target=no-such-machine},select' 2>&1 | filecheck %s --check-prefix=MACHINE

glow_high.constant @matrix : tensor<4x4xf32> {value = dense<1.0> : tensor<4x4xf32>}
glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @narrow : tensor<32x3x3x8xf32> {value = dense<1.0> : tensor<32x3x3x8xf32>}

// A transformed filter, and scratch for inputs, products and the patch of a tile at the edge.

// WINOGRAD-LABEL: glow_low.func @convolutions(
// WINOGRAD:         glow_low.conv @out %features, @in %image, @in %{{[a-z_0-9]+}}, {{.*}}@scratch
// WINOGRAD-SAME:      kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}
// WINOGRAD-SAME:      packing = {filter = {form = "winograd", shape = [32, 3, 3, 32], panel = 16, height = 4, width = 4, stride = 1}
// WINOGRAD-NOT:     conv-winograd

// STRICT-NOT:     conv-winograd

// What was measured of a machine may be given by its target: tiles of a block, and vectors of a panel.

// MEASURED:       glow_low.conv @out %features, {{.*}}kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 6, prefetch = 0}
// MEASURED-SAME:    packing = {filter = {form = "winograd", shape = [32, 3, 3, 32], panel = 24,
glow_low.func @convolutions(@in %image: memref<1x12x12x32xf32>, @in %thin: memref<1x12x12x8xf32>, @in %tiny: memref<1x5x5x32xf32>, @in %learned: memref<32x3x3x32xf32>, @out %features: memref<1x10x10x32xf32>, @out %dot: memref<1x3x3x32xf32>, @out %halves: memref<1x5x5x32xf32>) {
  %filter = glow_low.weight @filter : memref<32x3x3x32xf32>
  %narrow = glow_low.weight @narrow : memref<32x3x3x8xf32>
  glow_low.conv @out %features, @in %image, @in %filter
  // A filter that is not known, few channels, a small image, a stride.
  glow_low.conv @out %features, @in %image, @in %learned
  glow_low.conv @out %features, @in %thin, @in %narrow
  glow_low.conv @out %dot, @in %tiny, @in %filter
  glow_low.conv @out %halves, @in %image, @in %filter {strides = [2, 2]}
}

// What takes long is cut into parts, as scratch is, one for each thread; what is small stays whole.

// PARTS: #target = #glow.target<{{.*}} threads = 2>
// PARTS-LABEL:   glow_low.func @convolutions(
// PARTS:         glow_low.alloc : memref<36x304xf32>
// PARTS-NEXT:    glow_low.alloc : memref<2x36x160xf32>
// PARTS-NEXT:    glow_low.alloc : memref<2x36x32xf32>
// PARTS-NEXT:    glow_low.conv @out %features, {{.*}}partitions = {transform = 7, columns = 2}
// PARTS:         glow_low.conv @out %features, {{.*}}kernel = "conv", tiles = {rows = 100, prefetch = 0}, partitions = {pack = {{[0-9]}}, rows = {{[0-9]}}}
// PARTS:         glow_low.conv @out %dot
// PARTS-NOT:     partitions
// PARTS-LABEL: glow_low.func @main(
// PARTS-NOT:     partitions

// CHECK-LABEL: glow_low.func @main(
// CHECK:         glow_low.splat {{.*}}kernel = "fill"
// CHECK:         glow_low.stack {{.*}}kernel = "stack"
// CHECK:         glow_low.copy {{.*}}kernel = "copy"
// CHECK:         glow_low.matmul @out %product, @in %rows, @in %{{.*}}kernel = "matmul"{{.*}}[4, 4]
// CHECK:         glow_low.dealloc
// CHECK-NOT:     kernel
// CHECK:         glow_low.batch_normalization
// CHECK-NOT:     kernel

// INTERPRETER-NOT: kernel
glow_low.func @main(@in %x: memref<4xf32>, @out %y: memref<4xf32>, @in %rows: memref<2x4xf32>, @out %product: memref<2x4xf32>) {
  %matrix = glow_low.weight @matrix : memref<4x4xf32>
  %0 = glow_low.alloc : memref<4xf32>
  %1 = glow_low.alloc : memref<4xf32>
  glow_low.splat @out %0 {value = 1.0}
  glow_low.stack @out %1, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"]} {
  ^bb0(%2: f32):
    glow_low.yield %2 : f32
  }
  glow_low.copy @out %y, @in %1
  glow_low.matmul @out %product, @in %rows, @in %matrix
  glow_low.dealloc @out %0
  glow_low.batch_normalization @out %y, @in %1, @in %x, @in %x, @in %x, @in %x
  glow_low.dealloc @out %1
}

// NO-THREADS: threads=0 is no number of threads
// LOOSE: no accuracy 'loose' (hint: there are default, strict)
// UNKNOWN: glow-opt: error: no backend 'no-such-backend'
// MACHINE: error: {{.*}}'no-such-machine'
