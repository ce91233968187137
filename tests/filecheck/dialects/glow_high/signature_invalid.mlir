// Signatures that contradict themselves or the body.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// expected-error@+1 {{the function says that it gives tensor<5xf32>, and returns tensor<4xf32>}}
glow_high.func @results(%x: tensor<4xf32>) -> tensor<5xf32> {
  glow_high.return %x
}

// -----

// expected-error@+1 {{'@scratch' is no qualifier of an argument: use @in, @out or @inout}}
glow_low.func @qualifier(@scratch %x: memref<4xf32>) {
}

// -----

glow_high.placeholder @y : tensor<4xf32> {output}
// expected-error@+1 {{a function has names of placeholders or arguments, not both}}
glow_high.func @both(%x: tensor<4xf32>, @y) {
}

// -----

// expected-error@+1 {{a glow_high.func does not hold glow_high.return}}
glow_high.func @behind(%x: tensor<4xf32>) {
  glow_high.return %x
  %0 = glow_high.relu %x : tensor<4xf32>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @behind
// CHECK: glow_high.func @fine(
// CHECK-NOT: @results
glow_high.func @fine(%x: tensor<4xf32>) -> tensor<4xf32> {
  glow_high.return %x
}
