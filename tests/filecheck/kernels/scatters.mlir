// A scatter copies its input unless that is where it writes, and adds updates where indices lead.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @scatter_nd.10x16(%result: !llvm.ptr, %input: !llvm.ptr, %indices: !llvm.ptr, %updates: !llvm.ptr) -> i32
// CHECK:         %[[APART:.*]] = llvm.icmp "ne"
// CHECK-NEXT:    scf.if %[[APART]] {
// CHECK-NEXT:      scf.for %{{.*}} = %c0 to %c160 step %c8 : i64 {
// CHECK:         scf.for %{{.*}} = %c0 to %c5 step %c1 : i64 {
// CHECK:           %[[FITS:.*]] = llvm.icmp "ult"
// CHECK-NEXT:      scf.if %[[FITS]] {
// CHECK-NEXT:        scf.for %{{.*}} = %c0 to %c16{{.*}} step %c8{{.*}} : i64 {
// CHECK:               llvm.fadd {{.*}} : vector<8xf32>
// CHECK:           } else {
// CHECK-NEXT:        llvm.store %c1_i32, %{{.*}}

glow_high.func @main(%x: tensor<10x16xf32>, %i: tensor<5x1xi64>, %u: tensor<5x16xf32>) -> tensor<10x16xf32> {
  %y = glow_high.scatter_nd %x, %i, %u {reduction = "add"} : tensor<10x16xf32>
  glow_high.return %y
}
