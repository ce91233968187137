// Attention is a loop over heads: keys and values are packed, scores are a product, rows are scaled, values are added up.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @attention.2x16x8(%result: !llvm.ptr, %query: !llvm.ptr, %key: !llvm.ptr, %value: !llvm.ptr, %scratch: !llvm.ptr,
// CHECK:         scf.for %{{.*}} = %c0 to %c2 step %c1 : i64 {
// CHECK:           llvm.call @gemm.f32.6x2(
// CHECK:           scf.for %{{.*}} = %c0 to %c16 step %c1 : i64 {
// CHECK:             llvm.fcmp "ogt"
// CHECK:           scf.for %{{.*}} = %c0 to %c16 step %c1 : i64 {
// CHECK:             llvm.fadd
// CHECK:           llvm.call @gemm.f32.6x1.epilogue(
// CHECK:         llvm.return

glow_high.func @main(%q: tensor<2x16x8xf32>, %k: tensor<2x16x8xf32>, %v: tensor<2x16x8xf32>) -> tensor<2x16x8xf32> {
  %y = glow_high.attention %q, %k, %v : tensor<2x16x8xf32>
  glow_high.return %y
}
