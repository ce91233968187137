// Gathers move above elementwise operators on stored tables that have more rows than are gathered.

// RUN: glow-opt %s -p 'raise-gathers{limit=256}' --split-input-file | filecheck %s
// RUN: glow-opt %s -p raise-gathers --split-input-file | filecheck %s --check-prefix=SMALL

// The table stays in its narrow type: its rows are converted, scaled by columns and by rows, and clipped. A scalar index drops
// an axis, two axes of indices add one. Small tables are computed as a whole, by `fold-constants`.

// CHECK-LABEL: glow_high.func @chain(
// CHECK:         %[[TI:.*]] = glow_high.gather %t, %i : tensor<2x3x16xf16>
// CHECK-NEXT:    %[[CAST:.*]] = glow_high.cast %[[TI]] {{.*}}: tensor<2x3x16xf32>
// CHECK-NEXT:    %[[M:.*]] = glow_high.mul %[[CAST]], %c : tensor<2x3x16xf32>
// CHECK-NEXT:    %[[RI:.*]] = glow_high.gather %r, %i : tensor<2x3x1xf32>
// CHECK-NEXT:    %[[S:.*]] = glow_high.mul %[[M]], %[[RI]] : tensor<2x3x16xf32>
// CHECK:         glow_high.clip
// CHECK:         %[[TK:.*]] = glow_high.gather %t, %k : tensor<16xf16>
// CHECK-NOT:     tensor<64x16xf32>
// SMALL-LABEL: glow_high.func @chain(
// SMALL-NOT:     tensor<2x3x16xf16>
// SMALL:         glow_high.clip {{.*}} : tensor<64x16xf32>
glow_high.constant @table : tensor<64x16xf16> {value = dense<1.0> : tensor<64x16xf16>}
glow_high.constant @columns : tensor<1x16xf32> {value = dense<2.0> : tensor<1x16xf32>}
glow_high.constant @rows : tensor<64x1xf32> {value = dense<3.0> : tensor<64x1xf32>}
glow_high.func @chain(%i: tensor<2x3xi64>, %k: tensor<i64>) -> (tensor<2x3x16xf32>, tensor<16xf32>) {
  %t = glow_high.get @table : tensor<64x16xf16>
  %c = glow_high.get @columns : tensor<1x16xf32>
  %r = glow_high.get @rows : tensor<64x1xf32>
  %low = glow_high.splat {value = -1.0} : tensor<f32>
  %high = glow_high.splat {value = 4.0} : tensor<f32>
  %0 = glow_high.cast %t {to = f32} : tensor<64x16xf32>
  %1 = glow_high.mul %0, %c : tensor<64x16xf32>
  %2 = glow_high.mul %1, %r : tensor<64x16xf32>
  %3 = glow_high.clip %2, %low, %high : tensor<64x16xf32>
  %4 = glow_high.gather %3, %i : tensor<2x3x16xf32>
  %5 = glow_high.gather %3, %k : tensor<16xf32>
  glow_high.return %4, %5
}

// -----

// Columns of an input: only these are computed, also where an operator reads a value twice.

// CHECK-LABEL: glow_high.func @columns(
// CHECK-NEXT:    %[[X:.*]] = glow_high.gather %x, %i {axis = 1} : tensor<8x4xf32>
// CHECK:         %[[E:.*]] = glow_high.exp %[[X]] : tensor<8x4xf32>
// CHECK-NEXT:    %[[S:.*]] = glow_high.sigmoid %[[E]] : tensor<8x4xf32>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.mul %[[E]], %[[S]] : tensor<8x4xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]
glow_high.func @columns(%x: tensor<8x64xf32>, %i: tensor<4xi64>) -> tensor<8x4xf32> {
  %0 = glow_high.exp %x : tensor<8x64xf32>
  %1 = glow_high.sigmoid %0 : tensor<8x64xf32>
  %2 = glow_high.mul %0, %1 : tensor<8x64xf32>
  %3 = glow_high.gather %2, %i {axis = 1} : tensor<8x4xf32>
  glow_high.return %3
}

// -----

// What others read stays, and so do tables of fewer rows than are gathered, and constants that are as wide.

// CHECK-LABEL: glow_high.func @stays(
// CHECK-NOT:     glow_high.gather %x
// CHECK-NOT:     glow_high.gather %a
// CHECK:         glow_high.return
glow_high.constant @a : tensor<64x16xf32> {value = dense<1.0> : tensor<64x16xf32>}
glow_high.func @stays(%x: tensor<64x4xf32>, %i: tensor<4xi64>, %many: tensor<64xi64>)
    -> (tensor<4x4xf32>, tensor<64x4xf32>, tensor<64x4xf32>, tensor<4x16xf32>) {
  %0 = glow_high.exp %x : tensor<64x4xf32>
  %1 = glow_high.gather %0, %i : tensor<4x4xf32>
  %2 = glow_high.neg %x : tensor<64x4xf32>
  %3 = glow_high.gather %2, %many : tensor<64x4xf32>
  %a = glow_high.get @a : tensor<64x16xf32>
  %4 = glow_high.neg %a : tensor<64x16xf32>
  %5 = glow_high.gather %4, %i : tensor<4x16xf32>
  glow_high.return %1, %0, %3, %5
}
