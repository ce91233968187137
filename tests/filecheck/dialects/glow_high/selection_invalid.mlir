// Mistakes in operators whose results have as many elements as their operands say.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong(%b: tensor<2x9x4xf32>, %s: tensor<2x3x9xf32>, %t: tensor<2x3x8xf32>, %m: tensor<2xi64>) {
  // expected-error @below {{scores of shape (2, 3, 8) do not fit boxes of shape (2, 9, 4)}}
  %0, %1 = glow_high.non_max_suppression %b, %t {limit = 1} : tensor<6x3xi64>, tensor<i64>
}

// -----

glow_high.func @wrong(%b: tensor<2x9x4xf32>, %s: tensor<2x3x9xf32>, %t: tensor<2x3x8xf32>, %m: tensor<2xi64>) {
  // expected-error @below {{the limit is at most the number of boxes, 9, not 10}}
  %0, %1 = glow_high.non_max_suppression %b, %s {limit = 10} : tensor<60x3xi64>, tensor<i64>
}

// -----

glow_high.func @wrong(%b: tensor<2x9x4xf32>, %s: tensor<2x3x9xf32>, %t: tensor<2x3x8xf32>, %m: tensor<2xi64>) {
  // expected-error @below {{limits and thresholds are single numbers}}
  %0, %1 = glow_high.non_max_suppression %b, %s, %m {limit = 1} : tensor<6x3xi64>, tensor<i64>
}
