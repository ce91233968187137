// A vector of floats is clamped, converted as a whole, and corrected at the upper end and where there is no number.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @stack.64(
// CHECK:         llvm.fptosi %{{.*}} : vector<8xf32> to vector<8xi32>
// CHECK-NEXT:    llvm.fcmp "oge"
// CHECK:         llvm.fcmp "uno"
// CHECK-NOT:     llvm.fptosi.sat

glow_high.func @main(%x: tensor<64xf32>) -> tensor<64xi32> {
  %y = glow_high.cast %x {to = i32} : tensor<64xi32>
  glow_high.return %y
}
