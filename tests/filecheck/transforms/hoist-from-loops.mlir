// What is the same in all trips moves in front of the loop, and products of rows are computed for all trips at once.

// RUN: glow-opt %s -p hoist-from-loops | filecheck %s
// RUN: glow-opt %s -p hoist-from-loops --mlir-print-debuginfo | filecheck %s --check-prefix=LOC

// LOC: glow_high.mul {{.*}} loc("half")
// LOC: glow_high.matmul {{.*}} loc("first")
// LOC: glow_high.matmul {{.*}} loc("second")

// Out of both loops; a splat is copied for what reads it in front of them, and stays for what does not.

// CHECK-LABEL: glow_high.func @same(
// CHECK-NEXT:    %[[H:.*]] = glow_high.splat {value = 0.5} : tensor<f32>
// CHECK-NEXT:    %[[M:.*]] = glow_high.mul %y, %[[H]] : tensor<4xf32>
// CHECK-NEXT:    %{{.*}} = glow_high.loop
// CHECK-NEXT:      %{{.*}} = glow_high.loop
// CHECK-NEXT:        %[[I:.*]] = glow_high.splat {value = 0.5} : tensor<f32>
// CHECK-NEXT:        %[[A:.*]] = glow_high.add %{{.*}}, %[[M]] : tensor<4xf32>
// CHECK-NEXT:        %{{.*}} = glow_high.mul %[[A]], %[[I]]
glow_high.func @same(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  %last = glow_high.loop %i = %n (%a = %x) {
    %inner = glow_high.loop %j = %n (%b = %a) {
      %0 = glow_high.splat {value = 0.5} : tensor<f32>
      %1 = glow_high.mul %y, %0 : tensor<4xf32> loc("half")
      %2 = glow_high.add %b, %1 : tensor<4xf32>
      %3 = glow_high.mul %2, %0 : tensor<4xf32>
      glow_high.yield %3
    } : tensor<4xf32>
    glow_high.yield %inner
  } : tensor<4xf32>
  glow_high.return %last
}

// What may fail moves in front of trips that surely take place, and not of others.

// CHECK-LABEL: glow_high.func @failing(
// CHECK:         %{{.*}} = glow_high.gather %y, %k
// CHECK-NEXT:    %{{.*}} = glow_high.loop %{{.*}} = 3
// CHECK:         %{{.*}} = glow_high.loop %{{.*}} = %n
// CHECK-NEXT:      %{{.*}} = glow_high.gather %x, %k
glow_high.func @failing(%x: tensor<4xf32>, %y: tensor<4xf32>, %k: tensor<1xi64>, %n: tensor<i64>) -> tensor<1xf32> {
  %0 = glow_high.splat {value = 0.0} : tensor<1xf32>
  %1 = glow_high.loop %i = 3 (%a = %0) {
    %2 = glow_high.gather %y, %k : tensor<1xf32>
    %3 = glow_high.add %a, %2 : tensor<1xf32>
    glow_high.yield %3
  } : tensor<1xf32>
  %4 = glow_high.loop %i = %n (%a = %1) {
    %5 = glow_high.gather %x, %k : tensor<1xf32>
    %6 = glow_high.add %a, %5 : tensor<1xf32>
    glow_high.yield %6
  } : tensor<1xf32>
  glow_high.return %4
}

// The matrix is read once for all rows, and so is the one behind what leads from rows to the second product.

// CHECK-LABEL: glow_high.func @products(
// CHECK-NEXT:    %[[P:.*]] = glow_high.matmul %x, %w, %b : tensor<3x1x4xf32>
// CHECK-NEXT:    %[[R:.*]] = glow_high.relu %[[P]] : tensor<3x1x4xf32>
// CHECK-NEXT:    %[[T:.*]] = glow_high.transpose %[[R]] {permutation = [0, 2, 1]} : tensor<3x4x1xf32>
// CHECK-NEXT:    %[[V:.*]] = glow_high.reshape %[[T]] {shape = [3, 1, 4]} : tensor<3x1x4xf32>
// CHECK-NEXT:    %[[Q:.*]] = glow_high.matmul %[[V]], %w {transpose_right = true} : tensor<3x1x4xf32>
// CHECK-NEXT:    %{{.*}} = glow_high.loop %{{.*}} = 3 (%[[A:.*]] = %a) over (%{{.*}} = %x, %[[ROW:.*]] = %[[Q]]) {
// CHECK-NEXT:      %[[S:.*]] = glow_high.matmul %[[A]], %w : tensor<1x4xf32>
// CHECK-NEXT:      %{{.*}} = glow_high.add %[[S]], %[[ROW]] : tensor<1x4xf32>
glow_high.func @products(%x: tensor<3x1x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>, %a: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %last = glow_high.loop %i = 3 (%h = %a) over (%row = %x) {
    %0 = glow_high.matmul %row, %w, %b : tensor<1x4xf32> loc("first")
    %1 = glow_high.relu %0 : tensor<1x4xf32>
    %2 = glow_high.transpose %1 {permutation = [1, 0]} : tensor<4x1xf32>
    %3 = glow_high.reshape %2 {shape = [1, 4]} : tensor<1x4xf32>
    %4 = glow_high.matmul %3, %w {transpose_right = true} : tensor<1x4xf32> loc("second")
    %5 = glow_high.matmul %h, %w : tensor<1x4xf32>
    %6 = glow_high.add %5, %4 : tensor<1x4xf32>
    glow_high.yield %6
  } : tensor<1x4xf32>
  glow_high.return %last
}

// The results of all trips take more than the matrix saves, or there may be fewer trips.

// CHECK-LABEL: glow_high.func @kept(
// CHECK-NEXT:    %{{.*}} = glow_high.splat
// CHECK-NEXT:    %{{.*}} = glow_high.loop
// CHECK-NEXT:      %{{.*}} = glow_high.matmul
// CHECK:         %{{.*}} = glow_high.loop
// CHECK-NEXT:      %{{.*}} = glow_high.matmul
glow_high.func @kept(%x: tensor<3x8x4xf32>, %w: tensor<4x4xf32>, %c: tensor<i1>) -> tensor<8x4xf32> {
  %a = glow_high.splat {value = 0.0} : tensor<8x4xf32>
  %0 = glow_high.loop %i = 3 (%h = %a) over (%row = %x) {
    %1 = glow_high.matmul %row, %w : tensor<8x4xf32>
    %2 = glow_high.add %h, %1 : tensor<8x4xf32>
    glow_high.yield %2
  } : tensor<8x4xf32>
  %3 = glow_high.loop %i = 3 while %c (%h = %0) over (%row = %x) {
    %4 = glow_high.matmul %row, %w : tensor<8x4xf32>
    %5 = glow_high.add %h, %4 : tensor<8x4xf32>
    glow_high.yield %c, %5
  } : tensor<8x4xf32>
  glow_high.return %3
}

// Trips are a size that is known at run time only. What uses a symbol that a trip binds stays behind that.

// CHECK-LABEL: glow_high.func @sized(
// CHECK:         %[[Q:.*]] = glow_high.matmul %x, %w : tensor<?x1x4xf32, #glow.sizes<[n], n = 0 to 6>>
// CHECK-NEXT:    %{{.*}} = glow_high.loop {{.*}} over (%[[ROW:.*]] = %x, %[[PRODUCT:.*]] = %[[Q]]) {
// CHECK-NEXT:      glow_high.bind_symbol %count
// CHECK-NEXT:      %{{.*}} = glow_high.shape
glow_high.func @sized(%x: tensor<?x1x2xf32, #glow.sizes<[n], n = 0 to 6>>, %w: tensor<2x4xf32>, %count: tensor<i64>) -> tensor<1x4xf32> {
  %zero = glow_high.splat {value = 0.0} : tensor<1x4xf32>
  %last = glow_high.loop %i = #glow.sizes<[n], n = 0 to 6> (%a = %zero) over (%row = %x) {
    glow_high.bind_symbol %count {symbol = #glow.sizes<[m], m = 0 to 6>}
    %0 = glow_high.shape {sizes = #glow.sizes<[m], m = 0 to 6>} : tensor<1xi64>
    %1 = glow_high.cast %0 {to = f32} : tensor<1xf32>
    %2 = glow_high.matmul %row, %w : tensor<1x4xf32>
    %3 = glow_high.add %a, %2 : tensor<1x4xf32>
    %4 = glow_high.add %3, %1 : tensor<1x4xf32>
    glow_high.yield %4
  } : tensor<1x4xf32>
  glow_high.return %last
}
