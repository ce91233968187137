// What is packed for products has zeros behind its last column: memory may hold denormal numbers there, whose products take
// many times as long.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @matmul.1x40x11(
// CHECK:         scf.for %{{.*}} = %c0 to %c8 step %c1 : i64 {
// CHECK:           llvm.store %[[ZERO:.*]], %{{.*}} {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr
// CHECK:         llvm.call @gemm.f32.6x2.narrow.partial(

glow_high.func @main(%q: tensor<1x40x8xf32>, %k: tensor<1x11x8xf32>) -> tensor<1x40x11xf32> {
  %t = glow_high.transpose %k {permutation = [0, 2, 1]} : tensor<1x8x11xf32>
  %y = glow_high.matmul %q, %t : tensor<1x40x11xf32>
  glow_high.return %y
}
