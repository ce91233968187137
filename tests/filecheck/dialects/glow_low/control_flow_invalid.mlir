// Mistakes in branches, and in loops whose trips are counted at run time.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_low.func @wrong() {
  %0 = glow_low.alloc : memref<i64>
  // expected-error @+1 {{what decides is read: use @in}}
  glow_low.loop %i = @out %0 {
  }
}
