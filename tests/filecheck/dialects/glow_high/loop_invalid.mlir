// Mistakes in loops over the rows of tensors.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong(%x: tensor<3x2xf32>) {
  // expected-error @below {{a loop goes over tensors of as many rows as it has trips, not tensor<3x2xf32>}}
  glow_high.loop %i = 4 over (%row = %x) {
    glow_high.yield
  }
  glow_high.return
}

// -----

glow_high.func @wrong(%x: tensor<3x2xf32>, %n: tensor<i64>) {
  // expected-error @below {{a loop goes over tensors of as many rows as it has trips, not tensor<3x2xf32>}}
  glow_high.loop %i = %n over (%row = %x) {
    glow_high.yield
  }
  glow_high.return
}

// -----

glow_high.func @wrong(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  // expected-error @below {{a region yields nothing, not tensor<2xf32>}}
  %0 = glow_high.loop %i = 3 over (%row = %x) {
    glow_high.yield
  } : tensor<3x2xf32>
  glow_high.return %0
}

// -----

// A row that goes backwards would be at a place that is known at run time only.

glow_high.func @wrong(%x: tensor<?x2xf32, #glow.sizes<[n], n = 0 to 3>>) {
  // expected-error @below {{what is reversed has a number of rows}}
  glow_high.loop %i = #glow.sizes<[n], n = 0 to 3> over (%row = %x reversed) {
    glow_high.yield
  }
  glow_high.return
}

// -----

glow_high.func @wrong(%x: tensor<?xf32, #glow.sizes<[n], n = 0 to 3>>) {
  // expected-error @below {{trips are one size, which is never below 0}}
  glow_high.loop %i = #glow.sizes<[n - 1], n = 0 to 3> {
    glow_high.yield
  }
  glow_high.return
}

// -----

glow_high.func @wrong(%x: tensor<3x2xf32>) {
  // expected-error @below {{what is reversed is told by different numbers from 0 to 0}}
  "glow_high.loop"(%x) <{operandSegmentSizes = array<i32: 0, 0, 0, 1>, trips = 3 : i64, reversed_inputs = array<i64: 1>}> ({
  ^bb0(%i: tensor<i64>, %row: tensor<2xf32>):
    "glow_high.yield"() : () -> ()
  }) : (tensor<3x2xf32>) -> ()
  glow_high.return
}
