// The place of the largest goes with it, in a vector of integers.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @arg_max.3x1(%result: !llvm.ptr, %input: !llvm.ptr)
// CHECK:         scf.for %[[ROW:.*]] = %c0 to %c3 step %c1 : i64 {
// CHECK:           llvm.select %[[MORE:.*]], %{{.*}}, %{{.*}} : vector<16xi1>, vector<16xf32>
// CHECK-NEXT:      llvm.select %[[MORE]], %{{.*}}, %{{.*}} : vector<16xi1>, vector<16xi32>
// CHECK:           llvm.sext {{.*}} : i32 to i64
// CHECK:           llvm.store {{.*}} : i64, !llvm.ptr
// CHECK-NEXT:    }

glow_high.func @main(%x: tensor<3x20xf32>) -> tensor<3x1xi64> {
  %y = glow_high.arg_max %x {axis = 1} : tensor<3x1xi64>
  glow_high.return %y
}
