// Each row of data walks down each tree: a loop with a condition, which ends at a leaf.

// RUN: glow-opt %s --stop-after structured --target scalar | filecheck %s

// CHECK-LABEL: llvm.func internal @trees.8x1(%result: !llvm.ptr, %input: !llvm.ptr, %nodes: !llvm.ptr, %roots: !llvm.ptr, %weights: !llvm.ptr)
// CHECK:         scf.for %[[ROW:.*]] = %c0 to %c8 step %c1 : i64 {
// CHECK:           scf.for %[[TREE:.*]] = %c0 to %c2 step %c1 : i64 {
// CHECK-NEXT:        %[[PLACE:.*]] = llvm.getelementptr inbounds %roots[%[[TREE]]]
// CHECK-NEXT:        %[[ROOT:.*]] = llvm.load %[[PLACE]]
// CHECK-NEXT:        %[[LEAF:.*]] = scf.while (%[[NODE:.*]] = %[[ROOT]]) : (i32) -> i32 {
// CHECK-NEXT:          %[[INNER:.*]] = llvm.icmp "sge" %[[NODE]], %c0_i32 : i32
// CHECK-NEXT:          scf.condition(%[[INNER]]) %[[NODE]] : i32
// CHECK-NEXT:        } do {
// CHECK:               llvm.fcmp "ole"
// CHECK:             llvm.sub %c-1_i32, %[[LEAF]] : i32
// CHECK:             llvm.getelementptr inbounds %weights[

glow_high.constant @nodes : tensor<3x4xi32> {value = dense<[[0, 1, -3, 1056964608], [1, -1, -2, 1073741824], [1, -4, -5, 1073741824]]> : tensor<3x4xi32>}
glow_high.constant @roots : tensor<2xi32> {value = dense<[0, 2]> : tensor<2xi32>}
glow_high.constant @leaves : tensor<5x1xf32> {value = dense<[[1.0], [2.0], [3.0], [4.0], [5.0]]> : tensor<5x1xf32>}

glow_high.func @main(%x: tensor<8x3xf32>) -> tensor<8x1xf32> {
  %nodes = glow_high.get @nodes : tensor<3x4xi32>
  %roots = glow_high.get @roots : tensor<2xi32>
  %leaves = glow_high.get @leaves : tensor<5x1xf32>
  %y = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves {size = 1} : tensor<8x1xf32>
  glow_high.return %y
}
