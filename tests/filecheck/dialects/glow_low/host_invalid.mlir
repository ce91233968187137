// Instructions of host programs: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_low.func @main() {
  // expected-error@+1 {{there is no function @part}}
  glow_low.call {callee = @part, queue = "cpu:0"}
}

// -----

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

glow_low.func @main() {
  %a = glow_low.alloc : memref<4xf32>
  %b = glow_low.alloc : memref<5xf32>
  // expected-error@+1 {{a transfer's buffers have different shapes}}
  glow_low.transfer @out %a, @in %b {queue = "cpu:0"}
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
}

// -----

glow_low.func @main() {
  // expected-error@+1 {{events are numbered by an i64 from 0 on}}
  glow_low.record_event {queue = "cpu:0", event = -1}
}

// -----

// What is right is printed.
// CHECK: glow_high.func @fine()
glow_high.func @fine() {
}
