// RUN: glow-opt %s -p fold-into-trees | filecheck %s

// Two trees of one node, each on two columns: what is computed of their leaves is in the weights.
glow_high.constant @first : tensor<1x4xi32> {value = dense<[[0, -1, -2, 1056964608]]> : tensor<1x4xi32>}
glow_high.constant @second : tensor<1x4xi32> {value = dense<[[1, -2, -1, 1065353216]]> : tensor<1x4xi32>}
glow_high.constant @root : tensor<1xi32> {value = dense<0> : tensor<1xi32>}
glow_high.constant @leaves : tensor<2x1xf32> {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>}
glow_high.constant @columns : tensor<2xi64> {value = dense<[2, 0]> : tensor<2xi64>}
glow_high.constant @table : tensor<3xf32> {value = dense<[5.0, 6.0, 7.0]> : tensor<3xf32>}

// CHECK-DAG: glow_high.constant @[[NODES:[a-z_0-9]+]] : tensor<2x4xi32> {value = dense<{{\[\[}}2, -1, -2, 1056964608], [1, -4, -3, 1065353216]]>
// CHECK-DAG: glow_high.constant @[[ROOTS:[a-z_0-9]+]] : tensor<2xi32> {value = dense<[0, 1]>
// CHECK-DAG: glow_high.constant @[[WEIGHTS:[a-z_0-9]+]] : tensor<4x1xf32> {value = dense<{{\[\[}}1.200000e+01], [1.400000e+01], [-1.000000e+00], [-2.000000e+00]]>
// CHECK-LABEL: glow_high.func @sum
glow_high.func @sum(%x: tensor<8x3xf32>) -> tensor<8x1xf32> {
  %columns = glow_high.get @columns : tensor<2xi64>
  %part = glow_high.gather %x, %columns {axis = 1} : tensor<8x2xf32>
  %root = glow_high.get @root : tensor<1xi32>
  %leaves = glow_high.get @leaves : tensor<2x1xf32>
  %first = glow_high.get @first : tensor<1x4xi32>
  %a = glow_high.tree_ensemble %part, %first, none, %root, %leaves {size = 1} : tensor<8x1xf32>
  %index = glow_high.cast %a {to = i64} : tensor<8x1xi64>
  %table = glow_high.get @table : tensor<3xf32>
  %found = glow_high.gather %table, %index {axis = 0} : tensor<8x1xf32>
  %two = glow_high.splat {value = 2.0} : tensor<1xf32>
  %twice = glow_high.mul %found, %two : tensor<8x1xf32>
  %second = glow_high.get @second : tensor<1x4xi32>
  %b = glow_high.tree_ensemble %x, %second, none, %root, %leaves {size = 1} : tensor<8x1xf32>
  %other = glow_high.neg %b : tensor<8x1xf32>
  // CHECK-DAG: %[[N:[a-z_0-9]+]] = glow_high.get @[[NODES]]
  // CHECK-DAG: %[[R:[a-z_0-9]+]] = glow_high.get @[[ROOTS]]
  // CHECK-DAG: %[[W:[a-z_0-9]+]] = glow_high.get @[[WEIGHTS]]
  // CHECK: %[[SUM:[a-z_0-9]+]] = glow_high.tree_ensemble %x, %[[N]], none, %[[R]], %[[W]] {size = 1}
  // CHECK-NEXT: glow_high.return %[[SUM]]
  %sum = glow_high.add %twice, %other : tensor<8x1xf32>
  glow_high.return %sum
}

// What reads two numbers of a tree keeps it as it is: each would go down the tree.
// CHECK-LABEL: glow_high.func @two
// CHECK: glow_high.tree_ensemble
// CHECK-NOT: glow_high.tree_ensemble
// CHECK: glow_high.exp
// CHECK: glow_high.neg
glow_high.func @two(%x: tensor<8x3xf32>) -> (tensor<8x1xf32>, tensor<8x1xf32>) {
  %root = glow_high.get @root : tensor<1xi32>
  %leaves = glow_high.get @leaves : tensor<2x1xf32>
  %first = glow_high.get @first : tensor<1x4xi32>
  %a = glow_high.tree_ensemble %x, %first, none, %root, %leaves {size = 1} : tensor<8x1xf32>
  %0 = glow_high.exp %a : tensor<8x1xf32>
  %1 = glow_high.neg %a : tensor<8x1xf32>
  glow_high.return %0, %1
}

// Numbers of rows, and of the inputs, are none of leaves; trees that choose the least are not added up.
// CHECK-LABEL: glow_high.func @rows
// CHECK: glow_high.tree_ensemble
// CHECK: glow_high.mul
// CHECK: glow_high.tree_ensemble
// CHECK: glow_high.add
glow_high.func @rows(%x: tensor<8x3xf32>, %y: tensor<8x1xf32>) -> tensor<8x1xf32> {
  %root = glow_high.get @root : tensor<1xi32>
  %leaves = glow_high.get @leaves : tensor<2x1xf32>
  %first = glow_high.get @first : tensor<1x4xi32>
  %a = glow_high.tree_ensemble %x, %first, none, %root, %leaves {size = 1} : tensor<8x1xf32>
  %0 = glow_high.mul %a, %y : tensor<8x1xf32>
  %b = glow_high.tree_ensemble %x, %first, none, %root, %leaves {size = 1, aggregate = "min"} : tensor<8x1xf32>
  %1 = glow_high.add %b, %0 : tensor<8x1xf32>
  glow_high.return %1
}
