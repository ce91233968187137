// Mistakes in branches and loops over operators.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.func @wrong(@s) {
  %0 = glow_high.splat {value = true} : tensor<i1>
  // expected-error @below {{state @s is read in the function itself}}
  %1 = glow_high.if %0 {
    %2 = glow_high.get @s {mutable} : tensor<4xf32>
    glow_high.yield %2
  } else {
    %3 = glow_high.splat {value = 1.0} : tensor<4xf32>
    glow_high.yield %3
  } : tensor<4xf32>
  glow_high.save %1, @s
}

// -----

glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.func @wrong(@s) {
  %0 = glow_high.splat {value = 1.0} : tensor<4xf32>
  // expected-error @below {{a region of operators does not hold glow_high.save}}
  glow_high.loop %i = 2 {
    glow_high.save %0, @s
    glow_high.yield
  }
}
