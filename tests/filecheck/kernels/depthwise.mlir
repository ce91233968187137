// A depthwise convolution computes two rows by four pixels of some channels at once: a loop over channels, 72 products in it.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @depthwise.f32.2x4.1x3x3.s1x1.d1x1(
// CHECK:         scf.for %{{.*}} = %c0 to %channels step %c8 : i64 {
// CHECK-NOT:       scf.
// CHECK-COUNT-72:  llvm.intr.fma({{.*}} -> vector<8xf32>
// CHECK-COUNT-8:   llvm.store {{.*}} : vector<8xf32>, !llvm.ptr
// CHECK-NEXT:    }
// CHECK-NEXT:    llvm.return
// CHECK-LABEL: llvm.func internal @conv_depthwise.1x4x4x16(
// CHECK:         scf.for %{{.*}} = %c0 to %c2 step %c1 : i64 {
// CHECK:           llvm.call @depthwise.f32.2x4.1x3x3.s1x1.d1x1(

glow_high.constant @w : tensor<16x3x3x1xf32> {value = dense<0.5> : tensor<16x3x3x1xf32>}
glow_high.func @main(%x: tensor<1x6x6x16xf32>) -> tensor<1x4x4x16xf32> {
  %w = glow_high.get @w : tensor<16x3x3x1xf32>
  %y = glow_high.conv %x, %w {group = 16} : tensor<1x4x4x16xf32>
  glow_high.return %y
}
