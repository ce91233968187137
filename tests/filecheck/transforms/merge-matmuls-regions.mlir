// Products merge with those of their own block alone: what a branch may not need is not computed for it.

// RUN: glow-opt %s -p merge-matmuls --split-input-file | filecheck %s

// What a loop carries is there before any operator of its block.

// CHECK-LABEL: glow_high.func @carried(
// CHECK:         glow_high.loop
// CHECK-NEXT:      %[[ROWS:.*]] = glow_high.concat %[[G:.*]], %[[H:.*]] {axis = 0} : tensor<2x2xf32>
// CHECK-NEXT:      %[[BOTH:.*]] = glow_high.matmul %[[ROWS]], %w : tensor<2x2xf32>
// CHECK-NEXT:      glow_high.slice %[[BOTH]] {starts = [0, 0], ends = [1, 2]
// CHECK-NEXT:      glow_high.slice %[[BOTH]] {starts = [1, 0], ends = [2, 2]
// CHECK-NEXT:      glow_high.tanh
glow_high.constant @w : tensor<2x2xf32> {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}
glow_high.func @carried(%x: tensor<1x2xf32>, %n: tensor<i64>) -> (tensor<1x2xf32>, tensor<1x2xf32>) {
  %w = glow_high.get @w : tensor<2x2xf32>
  %a, %b = glow_high.loop %i = %n (%g = %x, %h = %x) {
    %1 = glow_high.matmul %g, %w : tensor<1x2xf32>
    %2 = glow_high.matmul %h, %w : tensor<1x2xf32>
    %3 = glow_high.tanh %1 : tensor<1x2xf32>
    glow_high.yield %2, %3
  } : tensor<1x2xf32>, tensor<1x2xf32>
  glow_high.return %a, %b
}

// -----

// Neither branches, nor a branch and what is behind it, share a product; two in one region do.

// CHECK-LABEL: glow_high.func @branches(
// CHECK:         glow_high.if %flag
// CHECK:           glow_high.matmul %x, %{{.*}} : tensor<3x5xf32>
// CHECK-COUNT-2:   glow_high.slice
// CHECK:         } else {
// CHECK:           glow_high.matmul %x, %b : tensor<3x2xf32>
// CHECK:         glow_high.matmul %x, %a : tensor<3x2xf32>
glow_high.constant @a : tensor<2x2xf32> {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}
glow_high.constant @b : tensor<2x2xf32> {value = dense<[[1.0, 2.0], [5.0, 6.0]]> : tensor<2x2xf32>}
glow_high.constant @c : tensor<2x3xf32> {value = dense<2.0> : tensor<2x3xf32>}
glow_high.func @branches(%x: tensor<3x2xf32>, %flag: tensor<i1>) -> (tensor<3x2xf32>, tensor<3x3xf32>, tensor<3x2xf32>) {
  %a = glow_high.get @a : tensor<2x2xf32>
  %b = glow_high.get @b : tensor<2x2xf32>
  %c = glow_high.get @c : tensor<2x3xf32>
  %p, %q = glow_high.if %flag {
    %1 = glow_high.matmul %x, %a : tensor<3x2xf32>
    %2 = glow_high.matmul %x, %c : tensor<3x3xf32>
    glow_high.yield %1, %2
  } else {
    %1 = glow_high.matmul %x, %b : tensor<3x2xf32>
    %2 = glow_high.splat {value = 0.0 : f32} : tensor<3x3xf32>
    glow_high.yield %1, %2
  } : tensor<3x2xf32>, tensor<3x3xf32>
  %3 = glow_high.matmul %x, %a : tensor<3x2xf32>
  glow_high.return %p, %q, %3
}

// -----

// Rows that are first used inside a branch are multiplied in front of it.

// CHECK-LABEL: glow_high.func @used_inside(
// CHECK:         glow_high.concat %x, %z
// CHECK-NEXT:    glow_high.matmul
// CHECK-COUNT-2: glow_high.slice
// CHECK-NEXT:    glow_high.if
glow_high.constant @w : tensor<2x2xf32> {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}
glow_high.func @used_inside(%x: tensor<1x2xf32>, %z: tensor<1x2xf32>, %flag: tensor<i1>) -> (tensor<1x2xf32>) {
  %w = glow_high.get @w : tensor<2x2xf32>
  %1 = glow_high.matmul %x, %w : tensor<1x2xf32>
  %2 = glow_high.matmul %z, %w : tensor<1x2xf32>
  %3 = glow_high.if %flag {
    %4 = glow_high.tanh %1 : tensor<1x2xf32>
    glow_high.yield %4
  } else {
    glow_high.yield %2
  } : tensor<1x2xf32>
  glow_high.return %3
}
