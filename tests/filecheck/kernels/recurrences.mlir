// A recurrence is a loop over steps, each of which is a product of a row, and arithmetic on vectors of units.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @lstm_recurrence.7x1x8(%states: !llvm.ptr, %last_h: !llvm.ptr, %last_c: !llvm.ptr,
// CHECK:         scf.for %{{.*}} = %c0 to %c7 step %c1 : i64 {
// CHECK-NOT:       scf.
// CHECK:           llvm.call @row.f32.4(
// CHECK-NOT:       scf.
// CHECK:           llvm.store {{.*}} : vector<8xf32>, !llvm.ptr
// CHECK:         }
// CHECK:         llvm.return

glow_high.constant @w : tensor<1x32x4xf32> {value = dense<0.5> : tensor<1x32x4xf32>}
glow_high.constant @r : tensor<1x32x8xf32> {value = dense<0.5> : tensor<1x32x8xf32>}
glow_high.func @main(%x: tensor<7x1x4xf32>) -> tensor<1x1x8xf32> {
  %w = glow_high.get @w : tensor<1x32x4xf32>
  %r = glow_high.get @r : tensor<1x32x8xf32>
  %y, %last, %cell = glow_high.lstm %x, %w, %r : tensor<7x1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>
  glow_high.return %last
}
