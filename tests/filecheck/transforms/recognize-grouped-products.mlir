// Products of single rows with copies of the matrices that indices choose read the matrices themselves.

// RUN: glow-opt %s -p recognize-grouped-products --split-input-file | filecheck %s

// As PyTorch's exporter writes mixtures of experts: tuples of one index, rows as columns behind the matrices.

// CHECK-LABEL: glow_high.func @columns(
// CHECK-NEXT:    %[[ROWS:.*]] = glow_high.reshape %x {shape = [6, 8]} : tensor<6x8xf32>
// CHECK-NEXT:    %[[INDEX:.*]] = glow_high.reshape %i {shape = [6]} : tensor<6xi64>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.grouped_matmul %[[ROWS]], %w, %[[INDEX]] {transpose_weights = true} : tensor<6x40xf32>
// CHECK-NEXT:    %[[Z:.*]] = glow_high.reshape %[[Y]] {shape = [6, 40, 1]} : tensor<6x40x1xf32>
// CHECK-NEXT:    glow_high.return %[[Z]]
glow_high.func @columns(%w: tensor<4x40x8xf32>, %i: tensor<6x1xi64>, %x: tensor<6x8x1xf32>) -> tensor<6x40x1xf32> {
  %copies = glow_high.gather_nd %w, %i : tensor<6x40x8xf32>
  %y = glow_high.matmul %copies, %x : tensor<6x40x1xf32>
  glow_high.return %y
}

// -----

// Matrices behind the rows, of each of which there are two indices, and one row for both.

// CHECK-LABEL: glow_high.func @rows(
// CHECK-NEXT:    %[[BOTH:.*]] = glow_high.expand %x {shape = [3, 2, 1, 8]} : tensor<3x2x1x8xf32>
// CHECK-NEXT:    %[[ROWS:.*]] = glow_high.reshape %[[BOTH]] {shape = [6, 8]} : tensor<6x8xf32>
// CHECK-NEXT:    %[[INDEX:.*]] = glow_high.reshape %i {shape = [6]} : tensor<6xi32>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.grouped_matmul %[[ROWS]], %w, %[[INDEX]] : tensor<6x40xf32>
// CHECK-NEXT:    glow_high.reshape %[[Y]] {shape = [3, 2, 1, 40]} : tensor<3x2x1x40xf32>
glow_high.func @rows(%w: tensor<4x8x40xf32>, %i: tensor<3x2xi32>, %x: tensor<3x1x1x8xf32>) -> tensor<3x2x1x40xf32> {
  %copies = glow_high.gather %w, %i : tensor<3x2x8x40xf32>
  %y = glow_high.matmul %x, %copies : tensor<3x2x1x40xf32>
  glow_high.return %y
}

// -----

// Transposed, reshaped in between, and of a number of rows that is known at run time only.

// CHECK-LABEL: glow_high.func @sizes(
// CHECK:         glow_high.grouped_matmul %{{.*}}, %w, %{{.*}} {transpose_weights = true} : tensor<?x40xf32
// CHECK-LABEL: glow_high.func @reshaped(
// CHECK:         glow_high.grouped_matmul %{{.*}}, %w, %{{.*}} {transpose_weights = true} : tensor<6x40xf32>
glow_high.func @sizes(%w: tensor<4x40x8xf32>, %i: tensor<?xi64, #glow.sizes<[n], n = 1 to 64>>, %x: tensor<?x1x8xf32, #glow.sizes<[n], n = 1 to 64>>) -> tensor<?x1x40xf32, #glow.sizes<[n], n = 1 to 64>> {
  %copies = glow_high.gather %w, %i : tensor<?x40x8xf32, #glow.sizes<[n], n = 1 to 64>>
  %y = glow_high.matmul %x, %copies {transpose_right = true} : tensor<?x1x40xf32, #glow.sizes<[n], n = 1 to 64>>
  glow_high.return %y
}
glow_high.func @reshaped(%w: tensor<4x40x8xf32>, %i: tensor<3x2xi64>, %x: tensor<6x1x8xf32>) -> tensor<6x1x40xf32> {
  %copies = glow_high.gather %w, %i : tensor<3x2x40x8xf32>
  %batch = glow_high.reshape %copies {shape = [6, 40, 8]} : tensor<6x40x8xf32>
  %y = glow_high.matmul %x, %batch {transpose_right = true} : tensor<6x1x40xf32>
  glow_high.return %y
}

// -----

// What stays: several rows, matrices that something else reads, along another axis, or with few columns.

// CHECK-LABEL: glow_high.func @others(
// CHECK-NOT:     grouped_matmul
glow_high.func @others(%w: tensor<4x40x8xf32>, %v: tensor<4x8x8xf32>, %i: tensor<6xi64>, %x: tensor<6x2x8xf32>, %z: tensor<6x8x1xf32>, %u: tensor<4x8x1xf32>) -> (tensor<6x2x40xf32>, tensor<6x40x8xf32>, tensor<6x40x1xf32>, tensor<6x8x1xf32>, tensor<4x6x1xf32>) {
  %copies = glow_high.gather %w, %i : tensor<6x40x8xf32>
  %1 = glow_high.matmul %x, %copies {transpose_right = true} : tensor<6x2x40xf32>
  %2 = glow_high.gather %w, %i : tensor<6x40x8xf32>
  %3 = glow_high.matmul %2, %z : tensor<6x40x1xf32>
  %4 = glow_high.gather %v, %i : tensor<6x8x8xf32>
  %5 = glow_high.matmul %4, %z : tensor<6x8x1xf32>
  %6 = glow_high.gather %w, %i {axis = 1} : tensor<4x6x8xf32>
  %7 = glow_high.matmul %6, %u : tensor<4x6x1xf32>
  glow_high.return %1, %2, %3, %5, %7
}
