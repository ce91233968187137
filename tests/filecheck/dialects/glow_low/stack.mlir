// Stacks, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

// What repeats has a name.
// CHECK: #map = affine_map<(d0, d1) -> (d0, d1)>

// A broadcast row and a transposed read, and two results.
// CHECK-LABEL: glow_low.func @main(
glow_low.func @main(@in %x: memref<4x6xf32>, @in %row: memref<1x6xf32>, @in %t: memref<6x4xf32>, @in %b: memref<4x6xui8>, @out %y: memref<4x6xf32>, @out %z: memref<4x6xui8>) {
  // CHECK-NEXT: glow_low.stack @out %y, @out %z, @in %x, @in %row, @in %t, @in %b {maps = [#map, #map, #map, affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d1, d0)>, #map], iterators = ["parallel", "parallel"]} {
  glow_low.stack @out %y, @out %z, @in %x, @in %row, @in %t, @in %b {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  // CHECK-NEXT: ^bb0(%{{[0-9]+}}: f32, %{{[0-9]+}}: f32, %{{[0-9]+}}: f32, %{{[0-9]+}}: i8):
  ^bb0(%0: f32, %1: f32, %2: f32, %3: i8):
    // CHECK-NEXT: %sum = arith.addf %{{[0-9]+}}, %{{[0-9]+}} : f32
    %sum = arith.addf %0, %1 : f32
    // CHECK-NEXT: %product = arith.mulf %sum, %{{[0-9]+}} : f32
    %product = arith.mulf %sum, %2 : f32
    // CHECK-NEXT: glow_low.yield %product, %{{[0-9]+}} : f32, i8
    glow_low.yield %product, %3 : f32, i8
  // CHECK-NEXT: }
  }
  // CHECK-NEXT: glow_low.stack @out %y {maps = [#map], iterators = ["parallel", "parallel"], kernel = "fill"} {
  glow_low.stack @out %y {maps = [affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"], kernel = "fill"} {
    // CHECK-NEXT: %one = arith.constant 1.000000e+00 : f32
    %one = arith.constant 1.0 : f32
    // CHECK-NEXT: glow_low.yield %one : f32
    glow_low.yield %one : f32
  }
}

// An index space of one point, without dimensions.
// CHECK-LABEL: glow_low.func @point(
glow_low.func @point(@in %one: memref<1xf32>, @out %two: memref<f32>) {
  // CHECK: glow_low.stack @out %two, @in %one {maps = [affine_map<() -> ()>, affine_map<() -> (0)>], iterators = []} {
  glow_low.stack @out %two, @in %one {maps = [affine_map<() -> ()>, affine_map<() -> (0)>], iterators = []} {
  ^bb0(%0: f32):
    glow_low.yield %0 : f32
  }
}
