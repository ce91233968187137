// Mistakes in ensembles of decision trees.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong(%x: tensor<8x3xf64>, %nodes: tensor<5x4xi32>, %roots: tensor<2xi32>, %leaves: tensor<7x1xf32>) {
  // expected-error @below {{nodes for features of f64 have 5 numbers}}
  %0 = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves {size = 1} : tensor<8x1xf32>
}

// -----

glow_high.func @wrong(%x: tensor<8x3xf32>, %nodes: tensor<5x4xi32>, %tests: tensor<4xui8>, %roots: tensor<2xi32>, %leaves: tensor<7x1xf32>) {
  // expected-error @below {{tests must have 5 elements}}
  %0 = glow_high.tree_ensemble %x, %nodes, %tests, %roots, %leaves {size = 1} : tensor<8x1xf32>
}

// -----

glow_high.func @wrong(%x: tensor<8x3xf32>, %nodes: tensor<5x4xi32>, %roots: tensor<2xi32>, %leaves: tensor<7x1xf32>) {
  // expected-error @below {{a test is from 0 to 15}}
  %0 = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves {size = 1, test = 16} : tensor<8x1xf32>
}

// -----

glow_high.func @wrong(%x: tensor<8x3xf32>, %nodes: tensor<5x4xi32>, %roots: tensor<2xi32>, %leaves: tensor<7x1xf32>) {
  // expected-error @below {{leaves have 1 weights for 2 targets: targets must name theirs}}
  %0 = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves {size = 2} : tensor<8x2xf32>
}

// -----

glow_high.func @wrong(%x: tensor<8x3xf32>, %nodes: tensor<5x4xi32>, %roots: tensor<2xi32>, %leaves: tensor<7x1xf32>, %targets: tensor<6x1xi32>) {
  // expected-error @below {{targets must have shape (7, 1), not (6, 1)}}
  %0 = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves, %targets {size = 2} : tensor<8x2xf32>
}

// -----

glow_high.func @wrong(%x: tensor<8x3xf32>, %nodes: tensor<5x4xi32>, %roots: tensor<2xi32>, %leaves: tensor<7x1xf32>) {
  // expected-error @below {{'median' is none of sum, min, max}}
  %0 = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves {size = 1, aggregate = "median"} : tensor<8x1xf32>
}

// -----

glow_high.func @wrong(%x: tensor<8x3xf32>, %ranges: tensor<3x2xi32>, %t: tensor<6xf32>, %tests: tensor<4x7xui16>, %leaves: tensor<4x1x7xf32>) {
  // expected-error @below {{a tree has 2^B leaves, two or more, not 7}}
  %0 = glow_high.binned_tree_ensemble %x, %ranges, %t, %tests, none, %leaves {relations = [3], counts = [3], size = 1} : tensor<8x1xf32>
}

// -----

glow_high.func @wrong(%x: tensor<8x3xf32>, %ranges: tensor<3x2xi32>, %t: tensor<6xf32>, %tests: tensor<4x6xui16>, %leaves: tensor<4x1x8xf32>) {
  // expected-error @below {{tests must have shape (4, 7), not (4, 6)}}
  %0 = glow_high.binned_tree_ensemble %x, %ranges, %t, %tests, none, %leaves {relations = [3], counts = [3], size = 1} : tensor<8x1xf32>
}

// -----

glow_high.func @wrong(%x: tensor<8x3xf32>, %ranges: tensor<3x2xi32>, %t: tensor<6xf32>, %tests: tensor<4x7xui16>, %leaves: tensor<4x1x8xf32>) {
  // expected-error @below {{relations and counts must tell those of all 3 ranges}}
  %0 = glow_high.binned_tree_ensemble %x, %ranges, %t, %tests, none, %leaves {relations = [3], counts = [4], size = 1} : tensor<8x1xf32>
}

// -----

glow_high.func @wrong(%x: tensor<8x3xf32>, %ranges: tensor<3x2xi32>, %t: tensor<6xf64>, %tests: tensor<4x7xui16>, %leaves: tensor<4x1x8xf32>) {
  // expected-error @below {{thresholds must be f32, as features are}}
  %0 = glow_high.binned_tree_ensemble %x, %ranges, %t, %tests, none, %leaves {relations = [3], counts = [3], size = 1} : tensor<8x1xf32>
}

// -----

glow_high.func @wrong(%x: tensor<8x3xf32>, %ranges: tensor<3x2xi32>, %t: tensor<6xf32>, %tests: tensor<4x7xui16>, %leaves: tensor<4x2x8xf32>, %targets: tensor<4xi32>) {
  // expected-error @below {{a tree with a target has one weight in each leaf}}
  %0 = glow_high.binned_tree_ensemble %x, %ranges, %t, %tests, none, %leaves, %targets {relations = [3], counts = [3], size = 2} : tensor<8x2xf32>
}

// -----

glow_high.func @wrong(%x: tensor<8x3xf16>, %nodes: tensor<5x4xi32>, %roots: tensor<2xi32>, %leaves: tensor<7x1xf32>) {
  // expected-error @below {{takes f32 or f64, not f16}}
  %0 = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves {size = 1} : tensor<8x1xf32>
}

// -----

glow_high.func @wrong(%x: tensor<8x3xf32>, %ranges: tensor<3x2xi32>, %t: tensor<6xf32>, %tests: tensor<4x9xui16>, %links: tensor<4x8x2xi16>, %leaves: tensor<4x1x8xf32>) {
  // expected-error @below {{links must have shape (4, 9, 2), not (4, 8, 2)}}
  %0 = glow_high.binned_tree_ensemble %x, %ranges, %t, %tests, %links, %leaves {relations = [3], counts = [3], size = 1} : tensor<8x1xf32>
}
