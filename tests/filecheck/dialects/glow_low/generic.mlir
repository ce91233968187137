// The instruction of a chain of stages, with an epilogue behind its own region.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

#ij = affine_map<(d0, d1) -> (d0, d1)>
#i = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: glow_low.func @sums(
glow_low.func @sums(@in %x: memref<4x8xf32>, @in %b: memref<4xf32>, @out %y: memref<4xf32>) {
  // CHECK-NEXT: glow_low.generic @out %y, @in %x {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterators = ["parallel", "reduction"]} {
  // CHECK-NEXT: ^bb0(%row: !glow.row<f32, [1]>):
  // CHECK-NEXT:   %sum = glow.stage(%row) over [1] fold [add] along [1] {
  // CHECK-NEXT:   ^bb{{[0-9]+}}(%e: f32):
  // CHECK-NEXT:     glow.yield %e : f32
  // CHECK-NEXT:   } : f32
  // CHECK-NEXT:   glow.yield %sum : f32
  // CHECK-NEXT: } epilogue(@in %b) [affine_map<(d0) -> (d0)>] {
  // CHECK-NEXT: ^bb{{[0-9]+}}(%p: f32, %q: f32):
  // CHECK-NEXT:   %r = arith.addf %p, %q : f32
  // CHECK-NEXT:   glow_low.yield %r : f32
  // CHECK-NEXT: }
  glow_low.generic @out %y, @in %x {maps = [#ij, #i], iterators = ["parallel", "reduction"]} {
  ^bb0(%row: !glow.row<f32, [1]>):
    %sum = glow.stage(%row) over [1] fold [add] along [1] {
    ^bb1(%e: f32):
      glow.yield %e : f32
    } : f32
    glow.yield %sum : f32
  } epilogue(@in %b) [affine_map<(d0) -> (d0)>] {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    glow_low.yield %r : f32
  }
}
