// A convolution calls the micro-kernel of products for each row of the result; that has a loop over the rows of the window.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @gemm.f32.4x2(
// CHECK-SAME:    %depth: i64, %input_step: i64, %output_step: i64, %count0: i64, %stride0: i64)
// CHECK:         scf.for %[[I:.*]] = %c0 to %count0 step %c1 iter_args(
// CHECK-NEXT:      llvm.mul %[[I]], %stride0 : i64
// CHECK:           scf.for %{{.*}} = %c0 to %depth step %c1 iter_args(
// CHECK-COUNT-8:     llvm.intr.fma(
// CHECK-LABEL: llvm.func internal @conv.1x4x4x16(%result: !llvm.ptr, %input: !llvm.ptr, %filter: !llvm.ptr)
// CHECK:         scf.for %[[ROW:.*]] = %c0 to %c4 step %c1 : i64 {
// CHECK:           llvm.mul %[[ROW]], %c48 : i64
// CHECK:           llvm.call @gemm.f32.4x2(%{{.*}}, %{{.*}}, %{{.*}}, %c24, %c8, %c16, %c3, %c48)

glow_high.constant @w : tensor<16x3x3x8xf32> {value = dense<0.5> : tensor<16x3x3x8xf32>}
glow_high.func @main(%x: tensor<1x6x6x8xf32>) -> tensor<1x4x4x16xf32> {
  %w = glow_high.get @w : tensor<16x3x3x8xf32>
  %y = glow_high.conv %x, %w : tensor<1x4x4x16xf32>
  glow_high.return %y
}
