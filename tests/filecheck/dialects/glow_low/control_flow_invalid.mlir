// Mistakes in branches, and in loops whose trips are counted at run time.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<2xi1>
  // expected-error @below {{the condition is one element of i1, not memref<2xi1>}}
  glow_low.if @in %0 {
  }
  glow_low.dealloc @out %0
}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<i1>
  // expected-error @below {{a region of instructions does not hold glow_high.splat}}
  glow_low.if @in %0 {
    %1 = glow_high.splat {value = 1.0} : tensor<4xf32>
  }
}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<i1>
  glow_low.if @in %0 {
    // expected-error @below {{an allocation is deallocated in the block that allocates it}}
    glow_low.dealloc @out %0
  }
}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<i32>
  // expected-error @below {{the number of trips is one element of i64, not memref<i32>}}
  glow_low.loop %i = @in %0 {
  }
}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<i64>
  // expected-error @below {{the condition is one element of i1, not memref<i64>}}
  glow_low.loop %i = 2 while @in %0 {
  }
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{a loop ends after some trips, or by a condition}}
  glow_low.loop %i {
  }
}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<i64>
  // expected-error @+1 {{what decides is read: use @in}}
  glow_low.loop %i = @out %0 {
  }
}

// -----

// What moves has to end inside its allocation, which takes a number of trips.

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<i64>
  %1 = glow_low.alloc : memref<8x4xf32>
  glow_low.loop %i = @in %0 {
    // expected-error @below {{a window moves with a loop whose trips are a size}}
    %2 = glow_low.window %1[%i by 4] : memref<8x4xf32> to memref<4xf32>
  }
}
