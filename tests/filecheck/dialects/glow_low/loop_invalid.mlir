// Mistakes in loops and windows.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_low.func @wrong() {
  // expected-error @below {{the body takes the number of the trip}}
  "glow_low.loop"() <{trips = 2 : i64, operandSegmentSizes = array<i32: 0, 0>}> ({
  ^bb0(%i: index, %j: index):
  }) : () -> ()
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{trips are counted by an i64}}
  "glow_low.loop"() <{trips = 2 : i8, operandSegmentSizes = array<i32: 0, 0>}> ({
  ^bb0(%i: index):
  }) : () -> ()
}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<8x4xf32>
  glow_low.loop %i = 2 {
    // expected-error @+1 {{what is viewed has type memref<8x4xf32>, not memref<8x4xi32>}}
    %1 = glow_low.window %0[%i by 8] : memref<8x4xi32> to memref<2x4xf32>
  }
}

// -----

// The offset of a view counts from the start of the allocation, so that it would stay where it is.

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<8x4xf32>
  glow_low.loop %i = 2 {
    %1 = glow_low.window %0[%i by 8] : memref<8x4xf32> to memref<2x4xf32>
    // expected-error @below {{a window cannot be viewed: it moves; take a window of the allocation}}
    %2 = glow_low.view %1 : memref<2x4xf32> to memref<8xf32>
  }
}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<8x4xf32>
  glow_low.loop %i = 2 {
    %1 = glow_low.window %0[%i by 8] : memref<8x4xf32> to memref<2x4xf32>
    // expected-error @below {{a window cannot be viewed: it moves; take a window of the allocation}}
    %2 = glow_low.window %1[%i by 4] : memref<2x4xf32> to memref<4xf32>
  }
}
