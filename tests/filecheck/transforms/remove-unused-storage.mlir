// Constants that no function mentions go; placeholders are the interface and stay.

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
glow_high.func @high() {
  %0 = glow_high.get @used_high : tensor<2xf32>
}
glow_low.func @low() {
  %0 = glow_low.weight @used_low : memref<2xf32>
}

// -----

// A module without functions keeps nothing but its placeholders.

// CHECK:     builtin.module
// CHECK-NOT: glow_high.constant
glow_high.constant @alone : tensor<2xf32> {value = dense<1.0> : tensor<2xf32>}
glow_high.placeholder @x : tensor<2xf32> {input}
