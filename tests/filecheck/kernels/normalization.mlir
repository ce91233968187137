// An instance norm is one function: per sample a loop that adds up pixels, one for squares of differences, one that writes.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @instance_normalization.2x4x4x8(%result: !llvm.ptr, %input: !llvm.ptr, %scale: !llvm.ptr, %offset: !llvm.ptr)
// CHECK:         scf.for %{{.*}} = %c0 to %c2 step %c1 : i64 {
// CHECK:           %[[SUM:.*]] = scf.for %{{.*}} = %c0 to %c16 step %c1 iter_args(%[[S:.*]] = %cst) -> (vector<8xf32>) : i64 {
// CHECK:             llvm.fadd %[[S]], %{{.*}} : vector<8xf32>
// CHECK:           %[[MEAN:.*]] = llvm.fmul %[[SUM]], %{{.*}} : vector<8xf32>
// CHECK:           %[[SQUARES:.*]] = scf.for %{{.*}} = %c0 to %c16 step %c1 iter_args(
// CHECK:             %[[D:.*]] = llvm.fsub %{{.*}}, %[[MEAN]] : vector<8xf32>
// CHECK-NEXT:        llvm.fmul %[[D]], %[[D]] : vector<8xf32>
// CHECK:           llvm.fmul %[[SQUARES]]
// CHECK:           scf.for %{{.*}} = %c0 to %c16 step %c1 : i64 {
// CHECK:             llvm.fsub %{{.*}}, %[[MEAN]] : vector<8xf32>
// CHECK:             llvm.store {{.*}} : vector<8xf32>, !llvm.ptr

glow_high.func @main(%x: tensor<2x4x4x8xf32>, %scale: tensor<8xf32>, %bias: tensor<8xf32>) -> tensor<2x4x4x8xf32> {
  %y = glow_high.instance_normalization %x, %scale, %bias : tensor<2x4x4x8xf32>
  glow_high.return %y
}
