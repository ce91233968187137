// Products that only results of rows need are computed for all rows behind the loop.

// RUN: glow-opt %s -p sink-from-loops | filecheck %s
// RUN: glow-opt %s -p sink-from-loops --mlir-print-debuginfo | filecheck %s --check-prefix=LOC

// LOC: glow_high.matmul {{.*}} loc("head")

// What is behind the product goes with it; the order of rows stays.

// CHECK-LABEL: glow_high.func @head(
// CHECK-NEXT:    %[[LAST:.*]], %[[ROWS:.*]] = glow_high.loop %{{.*}} = 3 (%[[H:.*]] = %h) over (%[[R:.*]] = %x) {
// CHECK-NEXT:      %[[S:.*]] = glow_high.add %[[H]], %[[R]] : tensor<1x4xf32>
// CHECK-NEXT:      glow_high.yield %[[S]], %[[S]]
// CHECK-NEXT:    } : tensor<1x4xf32>, tensor<3x1x4xf32> reversed
// CHECK-NEXT:    %[[P:.*]] = glow_high.matmul %[[ROWS]], %w : tensor<3x1x6xf32>
// CHECK-NEXT:    %[[HALF:.*]] = glow_high.splat {value = 0.5} : tensor<f32>
// CHECK-NEXT:    %[[Q:.*]] = glow_high.mul %[[P]], %[[HALF]] : tensor<3x1x6xf32>
// CHECK-NEXT:    glow_high.return %[[LAST]], %[[Q]]
glow_high.func @head(%x: tensor<3x1x4xf32>, %h: tensor<1x4xf32>, %w: tensor<4x6xf32>) -> (tensor<1x4xf32>, tensor<3x1x6xf32>) {
  %last, %all = glow_high.loop %i = 3 (%a = %h) over (%row = %x) {
    %half = glow_high.splat {value = 0.5} : tensor<f32>
    %0 = glow_high.add %a, %row : tensor<1x4xf32>
    %1 = glow_high.matmul %0, %w : tensor<1x6xf32> loc("head")
    %2 = glow_high.mul %1, %half : tensor<1x6xf32>
    glow_high.yield %0, %2
  } : tensor<1x4xf32>, tensor<3x1x6xf32> reversed
  glow_high.return %last, %all
}

// The next trip needs the product, the matrix is smaller than a row, or there is no product.

// CHECK-LABEL: glow_high.func @kept(
// CHECK-NEXT:    %{{.*}} = glow_high.loop
// CHECK-NEXT:      %{{.*}} = glow_high.matmul
// CHECK-NEXT:      %[[P:.*]] = glow_high.matmul
// CHECK-NEXT:      %[[Q:.*]] = glow_high.relu
// CHECK-NEXT:      glow_high.yield %{{.*}}, %{{.*}}, %[[P]], %[[Q]]
glow_high.func @kept(%x: tensor<3x8x4xf32>, %h: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> (tensor<3x8x4xf32>, tensor<3x8x4xf32>, tensor<3x8x4xf32>) {
  %last, %0, %1, %2 = glow_high.loop %i = 3 (%a = %h) over (%row = %x) {
    %3 = glow_high.matmul %a, %w : tensor<8x4xf32>
    %4 = glow_high.matmul %row, %w : tensor<8x4xf32>
    %5 = glow_high.relu %3 : tensor<8x4xf32>
    glow_high.yield %3, %3, %4, %5
  } : tensor<8x4xf32>, tensor<3x8x4xf32>, tensor<3x8x4xf32>, tensor<3x8x4xf32>
  glow_high.return %0, %1, %2
}
