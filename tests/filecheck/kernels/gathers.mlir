// A gather reads rows in vectors, and notes an index that leads nowhere in a status, which it returns.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @gather.5x16(%result: !llvm.ptr, %input: !llvm.ptr, %indices: !llvm.ptr) -> i32
// CHECK:         %[[STATUS:.*]] = llvm.alloca
// CHECK:         llvm.store %c0_i32, %[[STATUS]]
// CHECK:         scf.for %[[I:.*]] = %c0 to %c5 step %c1 : i64 {
// CHECK-NEXT:      %[[PLACE:.*]] = llvm.getelementptr inbounds %indices[%[[I]]]
// CHECK-NEXT:      %[[INDEX:.*]] = llvm.load %[[PLACE]]
// CHECK:           %[[FITS:.*]] = llvm.icmp "ult" %{{.*}}, %c10 : i64
// CHECK-NEXT:      %[[FAILS:.*]] = llvm.xor %[[FITS]], %true : i1
// CHECK-NEXT:      scf.if %[[FAILS]] {
// CHECK-NEXT:        llvm.store %c1_i32, %[[STATUS]]
// CHECK-NEXT:      }
// CHECK-NEXT:      llvm.select %[[FITS]]
// CHECK:           scf.for %{{.*}} = %c0 to %c16{{.*}} step %c8 : i64 {
// CHECK:             llvm.load {{.*}} -> vector<8xi32>
// CHECK:             llvm.store {{.*}} : vector<8xi32>, !llvm.ptr
// CHECK:         %[[RETURNED:.*]] = llvm.load %[[STATUS]]
// CHECK-NEXT:    llvm.return %[[RETURNED]] : i32

glow_high.func @main(%x: tensor<10x16xf32>, %i: tensor<5xi64>) -> tensor<5x16xf32> {
  %y = glow_high.gather %x, %i : tensor<5x16xf32>
  glow_high.return %y
}
