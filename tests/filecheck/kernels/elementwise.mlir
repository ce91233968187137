// A stack goes through its elements in vectors, and takes a shorter one for what remains: no loop for one trip.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @stack.20(%targets: !llvm.ptr, %sources: !llvm.ptr)
// CHECK:         scf.for %{{.*}} = %c0 to %c16 step %c8 : i64 {
// CHECK:           llvm.load {{.*}} -> vector<8xf32>
// CHECK:           llvm.fdiv {{.*}} : vector<8xf32>
// CHECK:           llvm.store {{.*}} : vector<8xf32>, !llvm.ptr
// CHECK-NEXT:    }
// CHECK-NOT:     scf.
// CHECK:         llvm.load {{.*}} -> vector<4xf32>
// CHECK:         llvm.store {{.*}} : vector<4xf32>, !llvm.ptr
// CHECK-NEXT:    llvm.return

glow_high.func @main(%x: tensor<20xf32>) -> tensor<20xf32> {
  %y = glow_high.tanh %x : tensor<20xf32>
  glow_high.return %y
}
