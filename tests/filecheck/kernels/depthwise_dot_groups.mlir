// A depthwise convolution of bytes computes two rows by seven pixels at once by dot groups of four lines: three products
// for each of them, and three that make up for the flipped signs of the input.

// RUN: glow-opt %s --stop-after structured --target avx512,features=+avx512bw,+avx512f,+avx512vl,+avx512vnni | filecheck %s

// CHECK-LABEL: llvm.func internal @depthwise.vpdpbusd.i8.i8.2x7.1x3x3.s1x1.d1x1(
// CHECK:         scf.for %{{.*}} = %c0 to %channels step %c16 : i64 {
// CHECK-NOT:       scf.
// CHECK-COUNT-45:  llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(
// CHECK-NOT:       llvm.call_intrinsic
// CHECK-COUNT-14:  llvm.store {{.*}} : vector<16xi32>, !llvm.ptr
// CHECK-NEXT:    }
// CHECK-NEXT:    llvm.return

glow_high.constant @w : tensor<16x3x3x1xi8> {value = dense<5> : tensor<16x3x3x1xi8>}
glow_high.func @main(%x: tensor<1x4x9x16xi8>) -> tensor<1x2x7x16xi32> {
  %w = glow_high.get @w : tensor<16x3x3x1xi8>
  %y = glow_high.conv %x, %w {group = 16} : tensor<1x2x7x16xi32>
  glow_high.return %y
}
