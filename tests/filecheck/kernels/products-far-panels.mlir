// With the widest vectors, a step of a product has two rows of the panel; a panel that is larger than the nearest cache,
// here of 256 rows by 256 bytes, is fetched eight rows ahead. Narrower vectors wait for neither.

// RUN: glow-opt %s --stop-after structured --target avx512 | filecheck %s
// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s --check-prefix=CHECK-AVX2

// CHECK-LABEL: llvm.func internal @gemm.f32.6x4.far.long(
// CHECK:         scf.for %{{.*}} = %c0 to %{{.*}} step %c2 iter_args({{.*}}, %[[W:[0-9]+]] = %weights)
// CHECK-NEXT:      %[[AHEAD:.*]] = llvm.getelementptr inbounds %[[W]][512]
// CHECK-NEXT:      "llvm.intr.prefetch"(%[[AHEAD]])
// CHECK-COUNT-48:  llvm.intr.fma(
// CHECK-NOT:     prefetch
// CHECK-LABEL: llvm.func internal @gemm.f32.6x4.long(
// CHECK-NOT:     prefetch

// CHECK-AVX2-LABEL: llvm.func internal @gemm.f32.6x2(
// CHECK-AVX2-NOT:     prefetch

glow_high.constant @w : tensor<256x64xf32> {value = dense<0.5> : tensor<256x64xf32>}
glow_high.constant @v : tensor<64x64xf32> {value = dense<0.5> : tensor<64x64xf32>}
glow_high.func @main(%x: tensor<12x256xf32>) -> tensor<12x64xf32> {
  %w = glow_high.get @w : tensor<256x64xf32>
  %y = glow_high.matmul %x, %w : tensor<12x64xf32>
  %v = glow_high.get @v : tensor<64x64xf32>
  %z = glow_high.matmul %y, %v : tensor<12x64xf32>
  glow_high.return %z
}
