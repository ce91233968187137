// Small powers become products and square roots.

// RUN: glow-opt %s -p expand-powers --split-input-file | filecheck %s
// RUN: glow-opt %s -p expand-powers --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// CHECK-LABEL: glow_high.func @powers(
// CHECK:         %[[SQUARE:.*]] = glow_high.mul %x, %x
// CHECK-NEXT:    %[[CUBE:.*]] = glow_high.mul %x, %[[SQUARE]]
// CHECK-NEXT:    %[[ROOT:.*]] = glow_high.sqrt %x
// CHECK-NEXT:    %[[FOURTH_ROOT:.*]] = glow_high.sqrt %[[ROOT]]
// CHECK-NEXT:    %[[THREE_QUARTERS:.*]] = glow_high.mul %[[ROOT]], %[[FOURTH_ROOT]]
// CHECK-NEXT:    %[[INVERSE_ROOT:.*]] = glow_high.sqrt %x
// CHECK-NEXT:    %[[INVERSE:.*]] = glow_high.reciprocal %[[INVERSE_ROOT]]
// CHECK-NEXT:    glow_high.return %[[CUBE]], %[[THREE_QUARTERS]], %[[INVERSE]]

// LOCATIONS: glow_high.mul {{.*}} loc("power")
// LOCATIONS: glow_high.mul {{.*}} loc("power")
glow_high.func @powers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %three = glow_high.splat {value = 3 : i64} : tensor<1xi64>
  %quarters = glow_high.splat {value = 0.75} : tensor<f32>
  %inverse = glow_high.splat {value = -0.5} : tensor<f32>
  %1 = glow_high.pow %x, %three : tensor<4xf32> loc("power")
  %2 = glow_high.pow %x, %quarters : tensor<4xf32>
  %3 = glow_high.pow %x, %inverse : tensor<4xf32>
  glow_high.return %1, %2, %3
}

// -----

// Other exponents stay, as do powers of integers, of zero, and of a base that broadcasts.

// CHECK-LABEL: glow_high.func @stay(
// CHECK:         glow_high.pow %x, %third
// CHECK-NEXT:    glow_high.pow %x, %large
// CHECK-NEXT:    glow_high.pow %x, %zero
// CHECK-NEXT:    glow_high.pow %x, %x
// CHECK-NEXT:    glow_high.pow %i, %two
// CHECK-NEXT:    glow_high.pow %x, %wide
glow_high.func @stay(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<2x4xf32>) {
  %third = glow_high.splat {value = 0.333} : tensor<f32>
  %large = glow_high.splat {value = 5.0} : tensor<f32>
  %zero = glow_high.splat {value = 0.0} : tensor<f32>
  %two = glow_high.splat {value = 2 : i32} : tensor<i32>
  %wide = glow_high.splat {value = 2.0} : tensor<2x4xf32>
  %1 = glow_high.pow %x, %third : tensor<4xf32>
  %2 = glow_high.pow %x, %large : tensor<4xf32>
  %3 = glow_high.pow %x, %zero : tensor<4xf32>
  %4 = glow_high.pow %x, %x : tensor<4xf32>
  %5 = glow_high.pow %i, %two : tensor<4xi32>
  %6 = glow_high.pow %x, %wide : tensor<2x4xf32>
  glow_high.return %1, %2, %3, %4, %5, %6
}
