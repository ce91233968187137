// Mistakes in loops over the rows of tensors.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong(%x: tensor<3x2xf32>) {
  // expected-error @below {{what is reversed is told by different numbers from 0 to 0}}
  "glow_high.loop"(%x) <{operandSegmentSizes = array<i32: 0, 0, 0, 1>, trips = 3 : i64, reversed_inputs = array<i64: 1>}> ({
  ^bb0(%i: tensor<i64>, %row: tensor<2xf32>):
    "glow_high.yield"() : () -> ()
  }) : (tensor<3x2xf32>) -> ()
  glow_high.return
}
