// Mistakes in branches and loops over operators.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong() {
  %0 = glow_high.splat {value = true} : tensor<2xi1>
  // expected-error @below {{the condition is one element of i1, not tensor<2xi1>}}
  glow_high.if %0 {
    glow_high.yield
  } else {
    glow_high.yield
  }
}

// -----

glow_high.func @wrong() {
  %0 = glow_high.splat {value = true} : tensor<i1>
  // expected-error @below {{a region yields tensor<i1>, not nothing}}
  glow_high.if %0 {
    glow_high.yield
  } else {
    glow_high.yield %0
  }
}

// -----

glow_high.func @wrong() {
  %0 = glow_high.splat {value = true} : tensor<i1>
  glow_high.if %0 {
    // expected-error @below {{glow_high.not terminates block in single-block region but is not a terminator}}
    %1 = glow_high.not %0 : tensor<i1>
  } else {
    glow_high.yield
  }
}

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

// -----

// An op with regions that is of another dialect is told wherever it stands.

glow_high.func @wrong() {
  %0 = glow_high.splat {value = true} : tensor<i1>
  // expected-error @below {{a region of operators does not hold scf.execute_region}}
  glow_high.if %0 {
    scf.execute_region {
      scf.yield
    }
    glow_high.yield
  } else {
    glow_high.yield
  }
}

// -----

glow_high.func @wrong() {
  %0 = glow_high.splat {value = 1.0} : tensor<4xf32>
  // expected-error @below {{a loop ends after some trips, or by a condition}}
  %1 = glow_high.loop %i (%a = %0) {
    glow_high.yield %a
  } : tensor<4xf32>
}

// -----

glow_high.func @wrong() {
  %0 = glow_high.splat {value = 1.0} : tensor<4xf32>
  // expected-error @below {{a loop gives values of the types that it carries}}
  %1 = glow_high.loop %i = 2 (%a = %0) {
    glow_high.yield %a
  } : tensor<2xf32>
}

// -----

glow_high.func @wrong() {
  %0 = glow_high.splat {value = 1.0} : tensor<4xf32>
  // expected-error @below {{the number of trips is one element of i64, not tensor<4xf32>}}
  glow_high.loop %i = %0 {
    glow_high.yield
  }
}

// -----

glow_high.func @wrong() {
  // expected-error @below {{only a region of a branch or loop yields}}
  glow_high.yield
}
