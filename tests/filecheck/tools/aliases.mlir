// Attributes that repeat have names in our dialects; the text of others is as xDSL prints it.

// RUN: glow-opt %s --split-input-file | filecheck %s

// CHECK-NOT: #map
// CHECK: affine.apply affine_map<(d0) -> ((d0 + 1))>
// CHECK-NEXT: affine.apply affine_map<(d0) -> ((d0 + 1))>
%i = "test.op"() : () -> index
%j = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
%k = affine.apply affine_map<(d0) -> (d0 + 1)> (%j)

// -----

// CHECK: #map = affine_map<(d0) -> (d0)>
// CHECK: glow_low.stack @out %y, @in %x {maps = [#map, #map]
glow_low.func @main(@in %x: memref<4xf32>, @out %y: memref<4xf32>) {
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}
