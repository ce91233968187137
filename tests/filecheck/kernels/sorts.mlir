// Where there is little memory, the largest are kept in a heap with the least on top: a loop that sifts, with a condition, is a function that each row calls.

// RUN: glow-opt %s --stop-after structured --target cortex-m55 | filecheck %s

// CHECK-LABEL: llvm.func internal @sift.f32.1.1.True(
// CHECK:         scf.while (%[[PLACE:.*]] = %{{.*}}, %[[GOES:.*]] = %{{.*}}) : (i32, i1) -> (i32, i1) {
// CHECK:           scf.condition(%{{.*}}) %[[PLACE]], %[[GOES]] : i32, i1
// CHECK-NEXT:    } do {
// CHECK:           scf.if %[[SINKS:.*]] {
// CHECK:           scf.yield %{{.*}}, %[[SINKS]] : i32, i1
// CHECK-LABEL: llvm.func internal @top_k.3x4(%values: !llvm.ptr, %indices: !llvm.ptr, %input: !llvm.ptr)
// CHECK:         scf.for %{{.*}} = %c0 to %c3 step %c1 : i32 {
// CHECK:           scf.for %{{.*}} = %c4 to %c20 step %c1 : i32 {
// CHECK:             scf.if %{{.*}} {
// CHECK:               llvm.call @sift.f32.1.1.True(

glow_high.func @main(%x: tensor<3x20xf32>) -> tensor<3x4xf32> {
  %y, %i = glow_high.top_k %x {k = 4} : tensor<3x4xf32>, tensor<3x4xi64>
  glow_high.return %y
}
