// Many short lines are one long one: what all of them share is repeated on the stack, to as many lines as a vector has lanes.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @stack.300x7(
// CHECK:         llvm.alloca %c56
// CHECK:         scf.for %{{.*}} = %c0 to %c56 step %c7 : i64 {
// CHECK:         scf.for %[[I:.*]] = %c0 to %c2096 step %c8 iter_args(%[[PHASE:.*]] = %c0) -> (i64) : i64 {
// CHECK:           llvm.fadd %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK:           llvm.select

glow_high.func @main(%x: tensor<300x7xf32>, %b: tensor<7xf32>) -> tensor<300x7xf32> {
  %y = glow_high.add %x, %b : tensor<300x7xf32>
  glow_high.return %y
}
