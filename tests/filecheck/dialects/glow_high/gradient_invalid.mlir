// What gradients cannot be of.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @integers(%x: tensor<4xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{i32 has no derivatives}}
  %d = glow_high.gradient %x, none, %i : tensor<4xi32>
}

// -----

glow_high.func @cotangent(%x: tensor<4xf32>, %g: tensor<2xf32>) {
  // expected-error@+1 {{the cotangent has another type than the target}}
  %d = glow_high.gradient %x, %g, %x : tensor<4xf32>
}

// -----

// CHECK-NOT: @integers
// CHECK-NOT: @cotangent
// CHECK: glow_high.func @fine()
glow_high.func @fine() {
}
