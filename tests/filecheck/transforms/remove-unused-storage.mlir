// Reads and constants that nothing uses go; placeholders are the interface and stay.

// RUN: glow-opt %s -p remove-unused-storage --split-input-file | filecheck %s

// CHECK-NOT:  @unused_constant
// CHECK:      glow_high.constant @used_high
// CHECK-NOT:  @unused_constant
// CHECK:      glow_high.constant @used_low
// CHECK-NEXT: glow_high.placeholder @unused_input
// CHECK-NEXT: glow_high.placeholder @unused_state
// CHECK-NOT:  @unused_constant
glow_high.constant @unused_constant : tensor<2xf32> {value = dense<1.0> : tensor<2xf32>}
glow_high.constant @used_high : tensor<2xf32> {value = dense<1.0> : tensor<2xf32>}
glow_high.constant @unused_constant_too : tensor<2xf32> {weights = "sha256:0123"}
glow_high.constant @used_low : tensor<2xf32> {value = dense<1.0> : tensor<2xf32>}
glow_high.placeholder @unused_input : tensor<2xf32> {input}
glow_high.placeholder @unused_state : tensor<2xf32> {state}
glow_high.placeholder @y : tensor<2xf32> {output}
glow_high.func @high(@y) {
  %0 = glow_high.get @used_high : tensor<2xf32>
  %1 = glow_high.get @unused_constant_too : tensor<2xf32>
  glow_high.save %0, @y
}
glow_low.func @low(@y) {
  %0 = glow_low.weight @used_low : memref<2xf32>
  %1 = glow_low.weight @unused_constant : memref<2xf32>
  %2 = glow_low.weight @y {mutable} : memref<2xf32>
  glow_low.copy @out %2, @in %0
}

// -----

// A module without functions keeps nothing but its placeholders.

// CHECK:     builtin.module
// CHECK-NOT: glow_high.constant
glow_high.constant @alone : tensor<2xf32> {value = dense<1.0> : tensor<2xf32>}
glow_high.placeholder @x : tensor<2xf32> {input}
