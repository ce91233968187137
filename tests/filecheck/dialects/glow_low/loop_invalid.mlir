// Mistakes in loops and windows.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_low.func @wrong() {
  // expected-error @below {{a loop has at least one trip}}
  glow_low.loop %i = 0 {
  }
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{a weight is declared in the function itself}}
  glow_low.loop %i = 2 {
    %0 = glow_low.weight @x : memref<4xf32>
  }
}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.loop %i = 2 {
    // expected-error @below {{an allocation is deallocated in the block that allocates it}}
    glow_low.dealloc @out %0
  }
}

// -----

// The last trip counts.

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<8x4xf32>
  glow_low.loop %i = 5 {
    // expected-error @below {{the window reaches 40 elements into an allocation of 32}}
    %1 = glow_low.window %0[%i by 8] : memref<8x4xf32> to memref<2x4xf32>
  }
}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<8x4xf32>
  glow_low.loop %i = 2 {
    // expected-error @below {{a window moves in front of its allocation}}
    %1 = glow_low.window %0[%i by -9] : memref<8x4xf32> to memref<2x4xf32, strided<[4, 1], offset: 8>>
  }
}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<8x4xf32>
  glow_low.loop %i = 2 {
    // expected-error @below {{a window keeps the type in which elements are stored}}
    %1 = glow_low.window %0[%i by 8] : memref<8x4xf32> to memref<2x4xi32>
  }
}

// -----

// What is inside a loop is executed, is an address or is a loop.

glow_low.func @wrong() {
  // expected-error @below {{a region of instructions does not hold glow_high.splat}}
  glow_low.loop %i = 2 {
    %0 = glow_high.splat {value = 1.0} : tensor<4xf32>
  }
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{a region of instructions does not hold glow_low.yield}}
  glow_low.loop %i = 2 {
    glow_low.yield %i : index
  }
}

// -----

// expected-error @below {{a loop belongs in a function of instructions, or in a region of one}}
glow_low.loop %i = 2 {
}

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

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<8x4xf32>
  glow_low.loop %i = 2 {
    // expected-error @below {{a window moves once with each loop}}
    %1 = glow_low.window %0[%i by 8, %i by 4] : memref<8x4xf32> to memref<2x4xf32>
  }
}
