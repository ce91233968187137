// A pool is a loop over each axis of the result, and inside one over each axis of the window, which carries the largest.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @max_pool.1x4x4x16(%result: !llvm.ptr, %input: !llvm.ptr)
// CHECK:         scf.for %[[H:.*]] = %c0 to %c4 step %c1 : i64 {
// CHECK-NEXT:      scf.for %[[W:.*]] = %c0 to %c4 step %c1 : i64 {
// CHECK:             %[[FOUND:.*]] = scf.for %[[Y:.*]] = %c0 to %c3 step %c1 iter_args(%[[A:.*]] = %[[LEAST:.*]]) -> (vector<16xf32>) : i64 {
// CHECK:               %[[ROW:.*]] = scf.for %[[X:.*]] = %c0 to %c3 step %c1 iter_args(%[[B:.*]] = %[[A]]) -> (vector<16xf32>) : i64 {
// CHECK:                 %[[PLACE:.*]] = llvm.getelementptr inbounds %input[
// CHECK-NEXT:            %[[PIXEL:.*]] = llvm.load %[[PLACE]]
// CHECK:                 llvm.fcmp "ogt" %[[B]], %[[PIXEL]] : vector<16xf32>
// CHECK:               scf.yield %[[ROW]] : vector<16xf32>
// CHECK:             llvm.store %[[FOUND]], %{{.*}}

glow_high.func @main(%x: tensor<1x9x9x16xf32>) -> tensor<1x4x4x16xf32> {
  %y = glow_high.max_pool %x {kernel_shape = [3, 3], strides = [2, 2]} : tensor<1x4x4x16xf32>
  glow_high.return %y
}
