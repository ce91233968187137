// A running sum is carried in f64, and rounded where it is written.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @cum_sum.3x20(%result: !llvm.ptr, %input: !llvm.ptr)
// CHECK:         scf.for %{{.*}} = %c0 to %c3 step %c1 : i64 {
// CHECK:           scf.for %{{.*}} = %c0 to %c20 step %c1 iter_args(%[[TOTAL:.*]] = %cst) -> (f64) : i64 {
// CHECK:             %[[NEXT:.*]] = llvm.fadd %[[TOTAL]], %{{.*}} : f64
// CHECK-NEXT:        %[[ROUNDED:.*]] = llvm.fptrunc %[[NEXT]] : f64 to f32
// CHECK:             llvm.store %[[ROUNDED]], %{{.*}} : f32, !llvm.ptr
// CHECK-NEXT:        scf.yield %[[NEXT]] : f64

glow_high.func @main(%x: tensor<3x20xf32>) -> tensor<3x20xf32> {
  %y = glow_high.cum_sum %x {axis = 1} : tensor<3x20xf32>
  glow_high.return %y
}
