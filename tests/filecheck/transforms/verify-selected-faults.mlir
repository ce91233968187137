// What does not fit to the kernel of an instruction: parts, tiles and scratch.

// RUN: glow-opt %s -p 'assign-target{target=avx2 threads=2},verify-selected' --split-input-file --verify-diagnostics | filecheck %s

// What fits.

// CHECK: partitions = {lines = 4}
glow_low.func @main(@in %x: memref<4096xf32>, @out %y: memref<4096xf32>) {
  glow_low.copy @out %y, @in %x {kernel = "copy", partitions = {lines = 4}}
}

// -----

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_high.placeholder @image : tensor<1x12x12x32xf32> {input}
glow_high.placeholder @learned : tensor<32x3x3x32xf32> {input}
glow_high.placeholder @features : tensor<1x10x10x32xf32> {output}
glow_low.func @main(@image, @learned, @features) {
  %image = glow_low.weight @image : memref<1x12x12x32xf32>
  %filter = glow_low.weight @packed : memref<2x36x32x16xf32>
  %features = glow_low.weight @features {mutable} : memref<1x10x10x32xf32>
  %0 = glow_low.alloc : memref<36x304xf32>
  %1 = glow_low.alloc : memref<2x36x160xf32>
  %2 = glow_low.alloc : memref<2x36x32xf32>
  glow_low.conv @out %features, @in %image, @in %filter, @scratch %0, @scratch %1, @scratch %2 {kernel = "conv-winograd", tiles = {height = 4, width = 4, block = 9, prefetch = 0}, packing = {filter = {form = "winograd", shape = array<i64: 32, 3, 3, 32>, panel = 16, height = 4, width = 4, stride = 1}}, partitions = {transform = 7, columns = 2}}
}

// -----

glow_high.constant @filter : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_high.constant @packed : tensor<2x36x32x16xf32> {value = dense<1.0> : tensor<2x36x32x16xf32>}
glow_low.func @main(@in %image: memref<1x12x12x32xf32>, @in %learned: memref<32x3x3x32xf32>, @out %features: memref<1x10x10x32xf32>) {
  %0 = glow_low.alloc : memref<1x2x288x16xf32>
  glow_low.conv @out %features, @in %image, @in %learned, @scratch %0 {kernel = "conv", tiles = {rows = 100, prefetch = 0}, partitions = {pack = 1, rows = 4}}
}

// -----

// Scalar parameters that are not numbered in order, and a bound of a clip.

glow_low.func @main(@in %x: memref<64xf32>, @out %y: memref<64xf32>) {
  // expected-error@+1 {{its scalar parameters are numbered [1]}}
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"], kernel = "stack"} {
  ^bb0(%e: f32):
    %factor = arith.constant {glow_low.parameter = 1 : i64} 0.5 : f32
    %scaled = arith.mulf %e, %factor : f32
    glow_low.yield %scaled : f32
  }
}

// -----

glow_low.func @main(@in %x: memref<64xf32>, @out %y: memref<64xf32>) {
  // expected-error@+1 {{a constant is a scalar parameter that cannot be one}}
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"], kernel = "stack"} {
  ^bb0(%e: f32):
    %bound = arith.constant {glow_low.parameter = 0 : i64} 0.5 : f32
    %clipped = arith.minimumf %e, %bound : f32
    glow_low.yield %clipped : f32
  }
}

// -----

// CHECK: packing = {weights = {form = "gates", shape = [24, 24], together = 1, units = 24}}
glow_high.constant @packed : tensor<1x1x24x24xf32> {value = dense<1.0> : tensor<1x1x24x24xf32>}
glow_low.func @main(@in %x: memref<3x1x24xf32>, @in %h: memref<1x24xf32>, @out %s: memref<3x1x24xf32>, @out %l: memref<1x24xf32>) {
  %w = glow_low.weight @packed : memref<1x1x24x24xf32>
  %0 = glow_low.alloc : memref<1x24xf32>
  %1 = glow_low.alloc : memref<2x1x24xf32>
  glow_low.rnn_recurrence @out %s, @out %l, @in %x, @in %w, @in %h, @scratch %0, @scratch %1 {kernel = "rnn-recurrence", packing = {weights = {form = "gates", shape = array<i64: 24, 24>, together = 1, units = 24}}}
}
