// Trees that are not deep become complete ones, which share their tests.

// RUN: glow-opt %s -p 'assign-target{target=avx2},bin-trees' --split-input-file | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=scalar},bin-trees' --split-input-file | filecheck %s --check-prefix=SCALAR

// Two trees: x0 <= 0.5 ? (x1 <= 2 ? 1 : 2) : 3, and x1 <= 2 ? 4 : 5, where a leaf takes the place of two.

// CHECK:       glow_high.constant @ranges : tensor<2x2xi32> {value = dense<[[0, 1], [1, 2]]> : tensor<2x2xi32>}
// CHECK-NEXT:  glow_high.constant @thresholds : tensor<2xf32> {value = dense<[5.000000e-01, 2.000000e+00]> : tensor<2xf32>}
// CHECK-NEXT:  glow_high.constant @tests : tensor<2x3xui16> {value = dense<[[0, 0, 1], [1, 0, 0]]> : tensor<2x3xui16>}
// CHECK-NEXT:  glow_high.constant @leaves_1 : tensor<2x1x4xf32> {value = dense<{{\[\[}}[3.000000e+00, 3.000000e+00, 2.000000e+00, 1.000000e+00]], {{\[\[}}5.000000e+00, 5.000000e+00, 4.000000e+00, 4.000000e+00]]]> : tensor<2x1x4xf32>}
// CHECK:         %{{.*}} = glow_high.binned_tree_ensemble %x, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {relations = [3], counts = [2], size = 1} : tensor<8x1xf32>
// SCALAR:        glow_high.tree_ensemble

glow_high.constant @nodes : tensor<3x4xi32> {value = dense<[[0, 1, -3, 1056964608], [1, -1, -2, 1073741824], [1, -4, -5, 1073741824]]> : tensor<3x4xi32>}
glow_high.constant @roots : tensor<2xi32> {value = dense<[0, 2]> : tensor<2xi32>}
glow_high.constant @leaves : tensor<5x1xf32> {value = dense<[[1.0], [2.0], [3.0], [4.0], [5.0]]> : tensor<5x1xf32>}

glow_high.func @shared(%x: tensor<8x3xf32>) -> tensor<8x1xf32> {
  %nodes = glow_high.get @nodes : tensor<3x4xi32>
  %roots = glow_high.get @roots : tensor<2xi32>
  %leaves = glow_high.get @leaves : tensor<5x1xf32>
  %y = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves {size = 1} : tensor<8x1xf32>
  glow_high.return %y
}

// -----

// Trees that are no constants stay.

// CHECK-LABEL: @unknown
// CHECK:         glow_high.tree_ensemble
// SCALAR-LABEL: @unknown

glow_high.func @unknown(%x: tensor<8x3xf32>, %nodes: tensor<3x4xi32>, %roots: tensor<2xi32>, %leaves: tensor<5x1xf32>) -> tensor<8x1xf32> {
  %y = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves {size = 1} : tensor<8x1xf32>
  glow_high.return %y
}

// -----

// So do those whose leaves name several targets.

// CHECK-LABEL: @several_targets
// CHECK:         glow_high.tree_ensemble
// SCALAR-LABEL: @several_targets

glow_high.constant @nodes : tensor<1x4xi32> {value = dense<[[0, -1, -2, 1056964608]]> : tensor<1x4xi32>}
glow_high.constant @roots : tensor<1xi32> {value = dense<0> : tensor<1xi32>}
glow_high.constant @leaves : tensor<2x1xf32> {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>}
glow_high.constant @targets : tensor<2x1xi32> {value = dense<[[0], [1]]> : tensor<2x1xi32>}

glow_high.func @several_targets(%x: tensor<8x3xf32>) -> tensor<8x2xf32> {
  %nodes = glow_high.get @nodes : tensor<1x4xi32>
  %roots = glow_high.get @roots : tensor<1xi32>
  %leaves = glow_high.get @leaves : tensor<2x1xf32>
  %targets = glow_high.get @targets : tensor<2x1xi32>
  %y = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves, %targets {size = 2} : tensor<8x2xf32>
  glow_high.return %y
}

// -----

// A tree with more levels than that, and few leaves, has links: where a test fails, and where it holds.

// CHECK-LABEL: glow_high.constant @nodes
// CHECK:       glow_high.constant @tests : tensor<1x9xui16> {value = dense<0> : tensor<1x9xui16>}
// CHECK-NEXT:  glow_high.constant @links : tensor<1x9x2xi16>
// CHECK:       glow_high.binned_tree_ensemble %x, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {relations = [3], counts = [1], size = 1} : tensor<8x1xf32>

glow_high.constant @nodes : tensor<9x4xi32> {value = dense<[[0, 1, -1, 0], [0, 2, -2, 0], [0, 3, -3, 0], [0, 4, -4, 0], [0, 5, -5, 0], [0, 6, -6, 0], [0, 7, -7, 0], [0, 8, -8, 0], [0, -9, -10, 0]]> : tensor<9x4xi32>}
glow_high.constant @roots : tensor<1xi32> {value = dense<0> : tensor<1xi32>}
glow_high.constant @leaves : tensor<10x1xf32> {value = dense<[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0]]> : tensor<10x1xf32>}

glow_high.func @deep(%x: tensor<8x3xf32>) -> tensor<8x1xf32> {
  %nodes = glow_high.get @nodes : tensor<9x4xi32>
  %roots = glow_high.get @roots : tensor<1xi32>
  %leaves = glow_high.get @leaves : tensor<10x1xf32>
  %y = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves {size = 1} : tensor<8x1xf32>
  glow_high.return %y
}
