// Loops of few trips are written out, and loops of elementwise operators take several trips at once.

// RUN: glow-opt %s -p unroll-loops | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},unroll-loops,glow-high-to-glow-low,eliminate-copies' | filecheck %s --check-prefix=LOW
// RUN: glow-opt %s -p unroll-loops --mlir-print-debuginfo | filecheck %s --check-prefix=LOC

// LOC-LABEL: glow_high.func @rows(
// LOC:         glow_high.add {{.*}} loc("sum")
// LOC:         glow_high.add {{.*}} loc("sum")

// Each trip has its row, from either end, and its number.

// CHECK-LABEL: glow_high.func @rows(
// CHECK-NEXT:    %[[N0:.*]] = glow_high.splat {value = 0} : tensor<i64>
// CHECK-NEXT:    %[[S0:.*]] = glow_high.slice %x {starts = [1, 0], ends = [2, 4]} : tensor<1x4xf32>
// CHECK-NEXT:    %[[R0:.*]] = glow_high.reshape %[[S0]] {shape = [4]} : tensor<4xf32>
// CHECK-NEXT:    %[[A0:.*]] = glow_high.add %a, %[[R0]] : tensor<4xf32>
// CHECK-NEXT:    %[[M0:.*]] = glow_high.mul %[[N0]], %[[N0]] : tensor<i64>
// CHECK-NEXT:    %[[N1:.*]] = glow_high.splat {value = 1} : tensor<i64>
// CHECK-NEXT:    %[[S1:.*]] = glow_high.slice %x {starts = [0, 0], ends = [1, 4]} : tensor<1x4xf32>
// CHECK-NEXT:    %[[R1:.*]] = glow_high.reshape %[[S1]] {shape = [4]} : tensor<4xf32>
// CHECK-NEXT:    %[[A1:.*]] = glow_high.add %[[A0]], %[[R1]] : tensor<4xf32>
// CHECK-NEXT:    %[[M1:.*]] = glow_high.mul %[[N1]], %[[N1]] : tensor<i64>
// CHECK-NEXT:    %[[P0:.*]] = glow_high.reshape %[[M0]] {shape = [1]} : tensor<1xi64>
// CHECK-NEXT:    %[[P1:.*]] = glow_high.reshape %[[M1]] {shape = [1]} : tensor<1xi64>
// CHECK-NEXT:    %[[ALL:.*]] = glow_high.concat %[[P0]], %[[P1]] {axis = 0} : tensor<2xi64>
// CHECK-NEXT:    glow_high.return %[[A1]], %[[ALL]]
glow_high.func @rows(%x: tensor<2x4xf32>, %a: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xi64>) {
  %last, %all = glow_high.loop %i = 2 (%b = %a) over (%row = %x reversed) {
    %0 = glow_high.add %b, %row : tensor<4xf32> loc("sum")
    %1 = glow_high.mul %i, %i : tensor<i64>
    glow_high.yield %0, %1
  } : tensor<4xf32>, tensor<2xi64>
  glow_high.return %last, %all
}

// 64 operators at once, behind what is left over.

// CHECK-LABEL: glow_high.func @elementwise(
// CHECK-NEXT:    %[[A:.*]] = glow_high.mul %a, %a
// CHECK-NEXT:    %[[B:.*]] = glow_high.mul %[[A]], %[[A]]
// CHECK-NEXT:    %[[L:.*]] = glow_high.loop %{{.*}} = 2 (%[[C:.*]] = %[[B]]) {
// CHECK-NEXT:      %[[D:.*]] = glow_high.mul %[[C]], %[[C]]
// CHECK-NEXT:      %[[E:.*]] = glow_high.mul %[[D]], %[[D]]
// CHECK:           glow_high.yield
// CHECK-NEXT:    } : tensor<4xf32>
// CHECK-NEXT:    glow_high.return %[[L]]
glow_high.func @elementwise(%a: tensor<4xf32>) -> tensor<4xf32> {
  %last = glow_high.loop %i = 130 (%b = %a) {
    %0 = glow_high.mul %b, %b : tensor<4xf32>
    glow_high.yield %0
  } : tensor<4xf32>
  glow_high.return %last
}

// So with a number of trips that is computed.

// CHECK-LABEL: glow_high.func @computed(
// CHECK-NEXT:    %[[K:.*]] = glow_high.splat {value = 64} : tensor<1xi64>
// CHECK-NEXT:    %[[Q:.*]] = glow_high.div %n, %[[K]] : tensor<1xi64>
// CHECK-NEXT:    %[[P:.*]] = glow_high.mul %[[Q]], %[[K]] : tensor<1xi64>
// CHECK-NEXT:    %[[R:.*]] = glow_high.sub %n, %[[P]] : tensor<1xi64>
// CHECK-NEXT:    %[[FIRST:.*]] = glow_high.loop %{{.*}} = %[[R]] (%[[B:.*]] = %a) {
// CHECK-NEXT:      %[[M:.*]] = glow_high.mul %[[B]], %[[B]] : tensor<4xf32>
// CHECK-NEXT:      glow_high.yield %[[M]]
// CHECK-NEXT:    } : tensor<4xf32>
// CHECK-NEXT:    %[[LAST:.*]] = glow_high.loop %{{.*}} = %[[Q]] (%{{.*}} = %[[FIRST]]) {
// CHECK:         glow_high.return %[[LAST]]
glow_high.func @computed(%a: tensor<4xf32>, %n: tensor<1xi64>) -> tensor<4xf32> {
  %last = glow_high.loop %i = %n (%b = %a) {
    %0 = glow_high.mul %b, %b : tensor<4xf32>
    glow_high.yield %0
  } : tensor<4xf32>
  glow_high.return %last
}

// Other operators take two trips at once, which carry values in two buffers in turns.

// CHECK-LABEL: glow_high.func @turns(
// CHECK-NEXT:    %[[A:.*]] = glow_high.matmul %a, %w
// CHECK-NEXT:    %[[L:.*]] = glow_high.loop %{{.*}} = 50 (%[[B:.*]] = %[[A]]) {
// CHECK-NEXT:      %[[C:.*]] = glow_high.matmul %[[B]], %w
// CHECK-NEXT:      %[[D:.*]] = glow_high.matmul %[[C]], %w
// CHECK-NEXT:      glow_high.yield %[[D]]
// CHECK-NEXT:    } : tensor<2x2xf32>
// LOW-LABEL:   glow_low.func @turns(
// LOW:           glow_low.loop %{{.*}} = 50 {
// LOW-NEXT:        %[[ONE:.*]] = glow_low.alloc
// LOW-NEXT:        glow_low.matmul @out %[[ONE]], @in %[[OTHER:.*]], @in %w
// LOW-NEXT:        glow_low.matmul @out %[[OTHER]], @in %[[ONE]], @in %w
// LOW-NEXT:        glow_low.dealloc @out %[[ONE]]
// LOW-NEXT:      }
glow_high.func @turns(%a: tensor<2x2xf32>, %w: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %last = glow_high.loop %i = 101 (%b = %a) {
    %0 = glow_high.matmul %b, %w : tensor<2x2xf32>
    glow_high.yield %0
  } : tensor<2x2xf32>
  glow_high.return %last
}

// Neither where a condition may end it, nor where rows are stacked, or the trip's number counts.

// CHECK-LABEL: glow_high.func @kept(
// CHECK:         glow_high.loop %{{.*}} = 3 while %c
// CHECK:         glow_high.loop %{{.*}} = 65 (%{{.*}} = %{{.*}}) over
// CHECK:         glow_high.loop %{{.*}} = %n
// CHECK-NEXT:      %{{.*}} = glow_high.cast
glow_high.func @kept(%a: tensor<2x2xf32>, %rows: tensor<65x2x2xf32>, %c: tensor<i1>, %n: tensor<i64>) -> tensor<2x2xf32> {
  %0 = glow_high.loop %i = 3 while %c (%b = %a) {
    %1 = glow_high.mul %b, %b : tensor<2x2xf32>
    glow_high.yield %c, %1
  } : tensor<2x2xf32>
  %2 = glow_high.loop %i = 65 (%b = %0) over (%row = %rows) {
    %3 = glow_high.matmul %b, %row : tensor<2x2xf32>
    glow_high.yield %3
  } : tensor<2x2xf32>
  %4 = glow_high.loop %i = %n (%b = %2) {
    %5 = glow_high.cast %i {to = f32} : tensor<f32>
    %6 = glow_high.add %b, %5 : tensor<2x2xf32>
    glow_high.yield %6
  } : tensor<2x2xf32>
  glow_high.return %4
}

// A symbol is bound once: a loop whose trips bind one stays, and so does one over a size.

// CHECK-LABEL: glow_high.func @binding(
// CHECK:         glow_high.loop %{{.*}} = 2
// CHECK:         glow_high.loop %{{.*}} = #glow.sizes<[n], n = 0 to 6>
glow_high.func @binding(%x: tensor<?xf32, #glow.sizes<[n], n = 0 to 6>>, %count: tensor<i64>, %z: tensor<1xi64>) -> tensor<1xi64> {
  %0 = glow_high.loop %i = 2 (%a = %z) {
    glow_high.bind_symbol %count {symbol = #glow.sizes<[m], m = 0 to 6>}
    %1 = glow_high.shape {sizes = #glow.sizes<[m], m = 0 to 6>} : tensor<1xi64>
    %2 = glow_high.add %a, %1 : tensor<1xi64>
    glow_high.yield %2
  } : tensor<1xi64>
  %3 = glow_high.loop %j = #glow.sizes<[n], n = 0 to 6> (%b = %0) {
    %4 = glow_high.add %b, %b : tensor<1xi64>
    glow_high.yield %4
  } : tensor<1xi64>
  glow_high.return %3
}
