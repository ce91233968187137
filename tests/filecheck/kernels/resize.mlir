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

// With antialiasing, lines are resized first: vectors of pixels add bands of lines. Then a transpose puts pixels in front.

// RUN: glow-opt %s --stop-after lowered --target avx2 | filecheck %s --check-prefix=LOWERED

// LOWERED-LABEL: glow_high.func @shrunk(
// LOWERED:         %[[LINES:.*]] = glow_high.resize %x {shape = [1, 3, 16, 64], mode = "linear", antialias = true} : tensor<1x3x16x64xf32>
// LOWERED-NEXT:    %[[TURNED:.*]] = glow_high.transpose %[[LINES]] {permutation = [3, 0, 1, 2]} : tensor<64x1x3x16xf32>
// LOWERED-NEXT:    %[[PIXELS:.*]] = glow_high.resize %[[TURNED]] {shape = [20, 1, 3, 16], mode = "linear", antialias = true} : tensor<20x1x3x16xf32>
// LOWERED-NEXT:    glow_high.transpose %[[PIXELS]] {permutation = [1, 2, 3, 0]} : tensor<1x3x16x20xf32>
glow_high.func @shrunk(%x: tensor<1x3x64x64xf32>) -> tensor<1x3x16x20xf32> {
  %y = glow_high.resize %x {shape = [1, 3, 16, 20], mode = "linear", antialias = true} : tensor<1x3x16x20xf32>
  glow_high.return %y
}
