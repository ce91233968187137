// A product is a micro-kernel of four rows by two registers, whose sums a loop over the depth carries, and a loop over rows.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @gemm.f32.4x2(%output: !llvm.ptr, %input: !llvm.ptr, %weights: !llvm.ptr, %depth: i64, %input_step: i64, %output_step: i64)
// CHECK:         scf.for %[[K:.*]] = %c0 to %depth step %c1 iter_args({{.*}}, %[[W:[0-9]+]] = %weights) -> ({{.*}}, !llvm.ptr) : i64 {
// CHECK-NEXT:      llvm.load %[[W]] {alignment = 32 : i64} : !llvm.ptr -> vector<8xf32>
// CHECK-COUNT-8:   llvm.intr.fma(
// CHECK-NEXT:      %[[NEXT:.*]] = llvm.getelementptr inbounds %[[W]][16] : (!llvm.ptr) -> !llvm.ptr, f32
// CHECK-NEXT:      scf.yield {{.*}}, %[[NEXT]] :
// CHECK-COUNT-8: llvm.store {{.*}} : vector<8xf32>, !llvm.ptr
// CHECK-NEXT:    llvm.return
// CHECK-LABEL: llvm.func internal @matmul.8x16(%result: !llvm.ptr, %left: !llvm.ptr, %right: !llvm.ptr)
// CHECK:         scf.for %[[ROWS:.*]] = %c0 to %c2 step %c1 : i64 {
// CHECK:           llvm.call @gemm.f32.4x2(%{{.*}}, %{{.*}}, %{{.*}}, %c24, %c24, %c16)

glow_high.constant @w : tensor<24x16xf32> {value = dense<0.5> : tensor<24x16xf32>}
glow_high.func @main(%x: tensor<8x24xf32>) -> tensor<8x16xf32> {
  %w = glow_high.get @w : tensor<24x16xf32>
  %y = glow_high.matmul %x, %w : tensor<8x16xf32>
  glow_high.return %y
}
