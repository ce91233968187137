// Instructions of host programs: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @t : tensor<4xf32> {between}
glow_high.func @part(@x, @t) attributes {device = "cpu:0"} {
  %x = glow_high.get @x : tensor<4xf32>
  glow_high.save %x, @t
}
glow_low.func @main(@x) {
  %x = glow_low.weight @x : memref<4xf32>
  // expected-error@+1 {{@part writes @t}}
  glow_low.call @in %x {callee = @part, queue = "cpu:0"}
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.func @part(@x, @y) attributes {device = "cpu:0"} {
  %x = glow_high.get @x : tensor<4xf32>
  glow_high.save %x, @y
}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  // expected-error@+1 {{@part is for another device}}
  glow_low.call @out %y, @in %x {callee = @part, queue = "cpu:1"}
}

// -----

// What is right is printed.
// CHECK: glow_high.func @fine()
glow_high.func @fine() {
}
