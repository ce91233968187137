// A softmax is one loop over rows: maximum, powers and their sum, quotients. What repeats in a row is vectors alone.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @softmax.3x16(%result: !llvm.ptr, %input: !llvm.ptr)
// CHECK:         scf.for %{{.*}} = %c0 to %c3 step %c1 : i64 {
// CHECK-NOT:       scf.
// CHECK:           llvm.fcmp "ogt"
// CHECK:           %[[PEAK:.*]] = llvm.select {{.*}} : i1, f32
// CHECK:           llvm.insertelement %[[PEAK]]
// CHECK:           llvm.fsub {{.*}} : vector<16xf32>
// CHECK:           llvm.store {{.*}} : vector<16xf32>, !llvm.ptr
// CHECK:           %[[SUM:.*]] = llvm.fadd {{.*}} : f32
// CHECK-NEXT:      %[[FACTOR:.*]] = llvm.fdiv %{{.*}}, %[[SUM]] : f32
// CHECK:           llvm.insertelement %[[FACTOR]]
// CHECK:           llvm.fmul {{.*}} : vector<16xf32>
// CHECK:           llvm.store {{.*}} : vector<16xf32>, !llvm.ptr
// CHECK-NEXT:    }
// CHECK-NEXT:    llvm.return

glow_high.func @main(%x: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %y = glow_high.softmax %x : tensor<3x16xf32>
  glow_high.return %y
}
