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
  // expected-error @below {{a loop declares and frees no memory}}
  glow_low.loop %i = 2 {
    %0 = glow_low.alloc : memref<4xf32>
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
    // expected-error @below {{a window moves forwards}}
    %1 = glow_low.window %0[%i by -8] : memref<8x4xf32> to memref<2x4xf32, strided<[4, 1], offset: 8>>
  }
}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<8x4xf32>
  glow_low.loop %i = 2 {
    // expected-error @below {{a window keeps the element type}}
    %1 = glow_low.window %0[%i by 8] : memref<8x4xf32> to memref<2x4xi32>
  }
}
