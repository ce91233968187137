// A row is folded in two vectors of the width that is unrolled, and what remains; then lanes are folded in halves.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @reduce_max.3(%result: !llvm.ptr, %input: !llvm.ptr)
// CHECK:         scf.for %[[ROW:.*]] = %c0 to %c3 step %c1 : i64 {
// CHECK-NEXT:      %[[FIRST:.*]] = llvm.mul %[[ROW]], %c20 : i64
// CHECK-NOT:       scf.for
// CHECK:           llvm.load {{.*}} -> vector<16xf32>
// CHECK:           llvm.load {{.*}} -> vector<4xf32>
// CHECK:           llvm.select {{.*}} : vector<8xi1>, vector<8xf32>
// CHECK:           llvm.select {{.*}} : vector<2xi1>, vector<2xf32>
// CHECK:           %[[NAN:.*]] = llvm.fcmp "uno" %[[A:.*]], %[[A]] : f32
// CHECK-NEXT:      %[[MORE:.*]] = llvm.fcmp "ogt" %[[A]], %[[B:.*]] : f32
// CHECK-NEXT:      %[[LARGER:.*]] = llvm.select %[[MORE]], %[[A]], %[[B]] : i1, f32
// CHECK-NEXT:      %[[MAX:.*]] = llvm.select %[[NAN]], %[[A]], %[[LARGER]] : i1, f32
// CHECK-NEXT:      %[[PLACE:.*]] = llvm.getelementptr inbounds %result[%[[ROW]]]
// CHECK-NEXT:      llvm.store %[[MAX]], %[[PLACE]]
// CHECK-NEXT:    }
// CHECK-NEXT:    llvm.return

glow_high.func @main(%x: tensor<3x20xf32>) -> tensor<3xf32> {
  %y = glow_high.reduce_max %x {axes = [1], keepdims = false} : tensor<3xf32>
  glow_high.return %y
}
