// Short lines are ordered by ranks. Of long ones, vectors of elements are compared with the last of the best, and those
// that go before it are collected, one for each bit of the mask; what is collected is ordered when there is more than twice
// as much as asked for.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @ranks.1(
// CHECK:         llvm.icmp "ult" %{{.*}}, %{{.*}} : vector<8xi64>
// CHECK-LABEL: llvm.func internal @top_k.3x4(
// CHECK:         scf.for %{{.*}} = %c0 to %c3 step %c1 : i64 {
// CHECK:           scf.for %{{.*}} = %c0 to %c20 step %c1 : i64 {
// CHECK:           llvm.call @ranks.1(
// CHECK-LABEL: llvm.func internal @top_k.1x4(
// CHECK:           llvm.fcmp "ugt" %{{.*}}, %{{.*}} : vector<32xf32>
// CHECK:           scf.if
// CHECK:             llvm.fcmp "ugt" %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK:             llvm.bitcast %{{.*}} : vector<8xi1> to i8
// CHECK:             scf.while
// CHECK:               llvm.call_intrinsic "llvm.ctlz"
// CHECK-LABEL: llvm.func internal @radix.4(
// CHECK-LABEL: llvm.func internal @top_k.1x300(
// CHECK:         llvm.call @radix.4(

glow_high.func @main(%x: tensor<3x20xf32>, %v: tensor<1x5000xf32>) -> (tensor<3x4xf32>, tensor<1x4xf32>, tensor<1x300xf32>) {
  %y, %i = glow_high.top_k %x {k = 4} : tensor<3x4xf32>, tensor<3x4xi64>
  %z, %j = glow_high.top_k %v {k = 4} : tensor<1x4xf32>, tensor<1x4xi64>
  %u, %k = glow_high.top_k %v {k = 300} : tensor<1x300xf32>, tensor<1x300xi64>
  glow_high.return %y, %z, %u
}
