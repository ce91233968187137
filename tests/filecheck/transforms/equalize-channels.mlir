// Channels between two products have the same largest magnitude in the weights of both, by powers of two.

// RUN: glow-opt %s -p equalize-channels | filecheck %s
// RUN: glow-opt %s -p equalize-channels,equalize-channels | filecheck %s

glow_high.constant @filter : tensor<2x1x1x1xf32> {value = dense<[[[[16.0]]], [[[0.5]]]]> : tensor<2x1x1x1xf32>}
glow_high.constant @bias : tensor<2xf32> {value = dense<[8.0, 1.0]> : tensor<2xf32>}
glow_high.constant @second : tensor<2x1x1x2xf32> {value = dense<[[[[1.0, 8.0]]], [[[-0.5, 2.0]]]]> : tensor<2x1x1x2xf32>}
glow_high.constant @left : tensor<2x2xf32> {value = dense<[[64.0, 1.0], [2.0, 1.0]]> : tensor<2x2xf32>}
glow_high.constant @right : tensor<2x2xf32> {value = dense<[[1.0, 0.0], [0.5, 4.0]]> : tensor<2x2xf32>}
glow_high.constant @dead : tensor<2x2xf32> {value = dense<[[0.0, 1.0], [0.0, 1.0]]> : tensor<2x2xf32>}

// A convolution, its bias, and the one behind a ReLU and a pool: factors 1/4 and 4.

// CHECK-DAG: glow_high.constant @filter_1 : tensor<2x1x1x1xf32> {value = dense<{{\[\[\[\[}}4.000000e+00]]], {{\[\[\[}}2.000000e+00]]]]>
// CHECK-DAG: glow_high.constant @bias_1 : tensor<2xf32> {value = dense<[2.000000e+00, 4.000000e+00]>
// CHECK-DAG: glow_high.constant @second_1 : tensor<2x1x1x2xf32> {value = dense<{{\[\[\[\[}}4.000000e+00, 2.000000e+00]]], {{\[\[\[}}-2.000000e+00, 5.000000e-01]]]]>

// A channel without weights has the factor 1.

// CHECK-DAG: glow_high.constant @dead_1 : tensor<2x2xf32> {value = dense<{{\[\[}}0.000000e+00, 2.000000e+00], [0.000000e+00, 2.000000e+00]]>
// CHECK-DAG: glow_high.constant @right_1 : tensor<2x2xf32> {value = dense<{{\[\[}}1.000000e+00, 0.000000e+00], [2.500000e-01, 2.000000e+00]]>

// CHECK:      glow_high.func @images
// CHECK-NEXT:   %filter = glow_high.get @filter_1 : tensor<2x1x1x1xf32>
// CHECK-NEXT:   %bias = glow_high.get @bias_1 : tensor<2xf32>
// CHECK-NEXT:   %second = glow_high.get @second_1 : tensor<2x1x1x2xf32>
// CHECK-NEXT:   glow_high.conv %x, %filter, %bias
glow_high.func @images(%x: tensor<1x4x4x1xf32>) -> tensor<1x3x3x2xf32> {
  %filter = glow_high.get @filter : tensor<2x1x1x1xf32>
  %bias = glow_high.get @bias : tensor<2xf32>
  %second = glow_high.get @second : tensor<2x1x1x2xf32>
  %c = glow_high.conv %x, %filter, %bias : tensor<1x4x4x2xf32>
  %r = glow_high.relu %c : tensor<1x4x4x2xf32>
  %p = glow_high.max_pool %r {kernel_shape = [2, 2]} : tensor<1x3x3x2xf32>
  %d = glow_high.conv %p, %second : tensor<1x3x3x2xf32>
  glow_high.return %d
}

// What something else reads as well, or an operator that no factor goes through, stays.

// CHECK:      glow_high.func @read_twice
// CHECK-NEXT:   glow_high.get @left : tensor<2x2xf32>
// CHECK-NEXT:   glow_high.get @right : tensor<2x2xf32>
glow_high.func @read_twice(%x: tensor<1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>) {
  %left = glow_high.get @left : tensor<2x2xf32>
  %right = glow_high.get @right : tensor<2x2xf32>
  %m = glow_high.matmul %x, %left : tensor<1x2xf32>
  %n = glow_high.matmul %m, %right : tensor<1x2xf32>
  glow_high.return %m, %n
}

// CHECK:      glow_high.func @sigmoid
// CHECK-NEXT:   glow_high.get @left : tensor<2x2xf32>
// CHECK-NEXT:   glow_high.get @right : tensor<2x2xf32>
glow_high.func @sigmoid(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %left = glow_high.get @left : tensor<2x2xf32>
  %right = glow_high.get @right : tensor<2x2xf32>
  %m = glow_high.matmul %x, %left : tensor<1x2xf32>
  %s = glow_high.sigmoid %m : tensor<1x2xf32>
  %n = glow_high.matmul %s, %right : tensor<1x2xf32>
  glow_high.return %n
}

glow_high.func @without_weights(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %dead = glow_high.get @dead : tensor<2x2xf32>
  %right = glow_high.get @right : tensor<2x2xf32>
  %m = glow_high.matmul %x, %dead : tensor<1x2xf32>
  %n = glow_high.matmul %m, %right : tensor<1x2xf32>
  glow_high.return %n
}
