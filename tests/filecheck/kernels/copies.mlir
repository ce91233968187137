// A transposition goes in squares of eight by eight, which are turned in registers.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @copy.24x16(%target: !llvm.ptr, %source: !llvm.ptr)
// CHECK:         scf.for %[[BLOCK:.*]] = %c0 to %c24 step %c8 : i64 {
// CHECK-NEXT:      scf.for %[[COLUMN:.*]] = %c0 to %{{.*}} step %c8 : i64 {
// CHECK:             scf.for %[[ROW:.*]] = %[[BLOCK]] to %{{.*}} step %c8 : i64 {
// CHECK-COUNT-8:       llvm.load {{.*}} -> vector<8xi32>
// CHECK:               llvm.shufflevector
// CHECK-COUNT-8:       llvm.store {{.*}} : vector<8xi32>, !llvm.ptr
// CHECK-NEXT:        }

glow_high.func @main(%x: tensor<16x24xf32>) -> tensor<24x16xf32> {
  %y = glow_high.transpose %x {permutation = [1, 0]} : tensor<24x16xf32>
  glow_high.return %y
}
