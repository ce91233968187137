// Ensembles of decision trees, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @nodes(%x: tensor<8x3xf32>, %nodes: tensor<5x4xi32>, %tests: tensor<5xui8>, %roots: tensor<2xi32>, %leaves: tensor<7x1xf32>, %targets: tensor<7x1xi32>) {
  %tree_ensemble = glow_high.tree_ensemble %x, %nodes, %tests, %roots, %leaves, %targets {size = 2, aggregate = "max"} : tensor<8x2xf32>
  %tree_ensemble_1 = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves {size = 1, test = 12} : tensor<8x1xf32>
}

glow_high.func @wide_nodes(%x: tensor<8x3xf64>, %nodes: tensor<5x5xi32>, %roots: tensor<2xi32>, %leaves: tensor<7x2xf64>) {
  %tree_ensemble = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves {size = 2} : tensor<8x2xf64>
}

glow_high.func @complete(%x: tensor<8x3xf32>, %ranges: tensor<3x2xi32>, %t: tensor<6xf32>, %tests: tensor<4x7xui16>, %leaves: tensor<4x1x8xf32>, %targets: tensor<4xi32>, %other: tensor<4x9xui16>, %links: tensor<4x9x2xi16>) {
  %binned_tree_ensemble = glow_high.binned_tree_ensemble %x, %ranges, %t, %tests, none, %leaves {relations = [3], counts = [3], size = 1} : tensor<8x1xf32>
  %binned_tree_ensemble_1 = glow_high.binned_tree_ensemble %x, %ranges, %t, %tests, none, %leaves, %targets {relations = [3, 2], counts = [2, 1], size = 3, aggregate = "min"} : tensor<8x3xf32>
  %binned_tree_ensemble_2 = glow_high.binned_tree_ensemble %x, %ranges, %t, %other, %links, %leaves {relations = [3], counts = [3], size = 1} : tensor<8x1xf32>
}
