// A predicate goes to the product that computes its value; others, and those that a backend ignores, go away.

// RUN: glow-opt %s -p 'assign-target{target=avx2},lower,verify-lowered' --split-input-file | filecheck %s

// CHECK-LABEL: glow_high.func @product(
// CHECK-NEXT:    %[[Y:.*]] = glow_high.predicated_matmul %x, %w, %mask, %b {transpose_right = true} : tensor<4x3x6xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]
glow_high.func @product(%x: tensor<4x3x5xf32>, %w: tensor<6x5xf32>, %b: tensor<6xf32>, %mask: tensor<4x3xi1>) -> tensor<4x3x6xf32> {
  %1 = glow_high.matmul %x, %w, %b {transpose_right = true} : tensor<4x3x6xf32>
  %2 = glow_high.predicate %1, %mask : tensor<4x3x6xf32>
  glow_high.return %2
}

// -----

// Through a reshape that keeps rows whole.

// CHECK-LABEL: glow_high.func @rows(
// CHECK-NEXT:    %[[MASK:.*]] = glow_high.reshape %mask {shape = [12]} : tensor<12xi1>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.predicated_matmul %x, %w, %[[MASK]] : tensor<12x6xf32>
// CHECK-NEXT:    %[[Z:.*]] = glow_high.reshape %[[Y]] {shape = [4, 3, 6]} : tensor<4x3x6xf32>
// CHECK-NEXT:    glow_high.return %[[Z]]
glow_high.func @rows(%x: tensor<12x5xf32>, %w: tensor<5x6xf32>, %mask: tensor<4x3xi1>) -> tensor<4x3x6xf32> {
  %1 = glow_high.matmul %x, %w : tensor<12x6xf32>
  %2 = glow_high.reshape %1 {shape = [4, 3, 6]} : tensor<4x3x6xf32>
  %3 = glow_high.predicate %2, %mask : tensor<4x3x6xf32>
  glow_high.return %3
}

// -----

// Not where the product is needed itself, where elements of a row differ, or where there is none.

// CHECK-LABEL: glow_high.func @ignored(
// CHECK-NOT:     predicate
// CHECK:         glow_high.return
glow_high.func @ignored(%x: tensor<4x5xf32>, %w: tensor<5x6xf32>, %row: tensor<4xi1>, %each: tensor<4x6xi1>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x5xf32>) {
  %1 = glow_high.matmul %x, %w : tensor<4x6xf32>
  %2 = glow_high.predicate %1, %row : tensor<4x6xf32>
  %3 = glow_high.matmul %x, %w {transpose_right = false} : tensor<4x6xf32>
  %4 = glow_high.predicate %3, %each : tensor<4x6xf32>
  %5 = glow_high.relu %x : tensor<4x5xf32>
  %6 = glow_high.predicate %5, %row : tensor<4x5xf32>
  glow_high.return %1, %2, %4, %6
}

// -----

// The input's product of a layer whose sequences have lengths is by sequences, and leaves out steps behind their ends.

// CHECK-LABEL: glow_high.func @layer(
// CHECK:         %[[X:.*]] = glow_high.transpose %x {permutation = [1, 0, 2]} : tensor<2x7x5xf32>
// CHECK:         %[[RUNS:.*]] = glow_high.less %{{.*}}, %{{.*}} : tensor<2x7xi1>
// CHECK:         %[[GATES:.*]] = glow_high.predicated_matmul %[[X]], %{{.*}}, %[[RUNS]] {transpose_right = true} : tensor<2x7x12xf32>
// CHECK:         %[[STEPS:.*]] = glow_high.transpose %[[GATES]] {permutation = [1, 0, 2]} : tensor<7x2x12xf32>
// CHECK:         glow_high.lstm_recurrence %[[STEPS]], %{{.*}}, none, %lengths
glow_high.func @layer(%x: tensor<7x2x5xf32>, %w: tensor<1x12x5xf32>, %r: tensor<1x12x3xf32>, %lengths: tensor<2xi32>) -> tensor<7x1x2x3xf32> {
  %y, %h, %c = glow_high.lstm %x, %w, %r, none, %lengths : tensor<7x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
  glow_high.return %y
}
