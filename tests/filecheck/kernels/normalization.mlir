// An instance norm is two means by rows of pixels, the second of squares, and a stack behind each.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @reduce.2x1x1x8(%result: !llvm.ptr, %input: !llvm.ptr)
// CHECK:         scf.for %{{.*}} = %c0 to %c2 step %c1 : i64 {
// CHECK:           llvm.fadd {{.*}} : vector<8xf32>
// CHECK:         llvm.return
// CHECK-LABEL: llvm.func internal @stack.2x4x4x8(%targets: !llvm.ptr, %targets_1: !llvm.ptr, %sources: !llvm.ptr, %sources_1: !llvm.ptr)
// CHECK:           llvm.fsub {{.*}} : vector<8xf32>
// CHECK-LABEL: llvm.func internal @stack.2x4x4x8.3(
// CHECK:           llvm.fmul {{.*}} : vector<8xf32>

glow_high.func @main(%x: tensor<2x4x4x8xf32>, %scale: tensor<8xf32>, %bias: tensor<8xf32>) -> tensor<2x4x4x8xf32> {
  %y = glow_high.instance_normalization %x, %scale, %bias : tensor<2x4x4x8xf32>
  glow_high.return %y
}
