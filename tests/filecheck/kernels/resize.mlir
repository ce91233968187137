// A linear resize is a loop over lines and one over pixels, and adds four weighted pixels in vectors of channels.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @resize.1x8x8x8(%result: !llvm.ptr, %input: !llvm.ptr)
// CHECK:         scf.for %{{.*}} = %c0 to %c8 step %c1 : i64 {
// CHECK:           scf.for %{{.*}} = %c0 to %c8 step %c1 : i64 {
// CHECK-COUNT-3:     llvm.intr.fma({{.*}} -> vector<8xf32>
// CHECK:             llvm.store {{.*}} : vector<8xf32>, !llvm.ptr
// CHECK-NEXT:      }

glow_high.func @main(%x: tensor<1x4x4x8xf32>) -> tensor<1x8x8x8xf32> {
  %y = glow_high.resize %x {shape = [1, 8, 8, 8], mode = "linear"} : tensor<1x8x8x8xf32>
  glow_high.return %y
}
