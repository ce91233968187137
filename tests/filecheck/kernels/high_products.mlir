// Upper halves of products of i32 are those of even lanes and of odd ones, which x86 multiplies without sorting them.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s
// RUN: glow-opt %s --stop-after structured --target sse2 | filecheck %s --check-prefix SORTED

// CHECK:       llvm.mul {{.*}} : vector<2xi64>
// CHECK-NEXT:  llvm.add {{.*}} : vector<2xi64>
// CHECK-NEXT:  llvm.lshr {{.*}} : vector<2xi64>
// CHECK-NEXT:  llvm.mul {{.*}} : vector<2xi64>
// CHECK-NEXT:  llvm.add {{.*}} : vector<2xi64>
// CHECK-NEXT:  llvm.shl {{.*}} : vector<2xi64>
// CHECK:       llvm.shufflevector {{.*}} [0, 5, 2, 7] : vector<4xi32>

// SORTED:      llvm.sext {{.*}} to vector<{{[0-9]+}}xi64>
// SORTED:      llvm.trunc

glow_high.func @main(%x: tensor<64xi32>, %multiplier: tensor<64xi32>, %shift: tensor<64xi32>) -> tensor<64xi8> {
  %y = glow_high.integer_rescale %x, %multiplier, %shift {to = i8, rounding = "twice_right"} : tensor<64xi8>
  glow_high.return %y
}
