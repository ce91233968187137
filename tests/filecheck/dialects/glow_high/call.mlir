// Functions on devices, and the function that calls them, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

// CHECK: glow.devices = [#glow.device<"cpu:0", #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu">>, #glow.device<"interpreter:0", #glow.target<backend = "interpreter">, memory_bytes = 4096, own_memory>]
builtin.module attributes {glow.devices = [
  #glow.device<"cpu:0", #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu">>,
  #glow.device<"interpreter:0", #glow.target<backend = "interpreter">, memory_bytes = 4096, own_memory>
]} {
  glow_high.placeholder @x : tensor<4xf32> {input}
  glow_high.placeholder @y : tensor<4xf32> {output}
  glow_high.placeholder @count : tensor<4xf32> {state}
  // CHECK: glow_high.placeholder @half : tensor<4xf32> {between}
  glow_high.placeholder @half : tensor<4xf32> {between}
  // CHECK: glow_high.func @first(@x, @half) attributes {device = "interpreter:0"} {
  glow_high.func @first(@x, @half) attributes {device = "interpreter:0"} {
    %x = glow_high.get @x : tensor<4xf32>
    %relu = glow_high.relu %x : tensor<4xf32>
    glow_high.save %relu, @half
  }
  glow_high.func @second(@half, @count, @y) attributes {device = "cpu:0"} {
    // CHECK: %half = glow_high.get @half : tensor<4xf32>
    %half = glow_high.get @half : tensor<4xf32>
    %count = glow_high.get @count {mutable} : tensor<4xf32>
    %sum = glow_high.add %half, %count : tensor<4xf32>
    glow_high.save %sum, @count
    glow_high.save %sum, @y
  }
  glow_high.func @main(@x, @count, @y) {
    %x = glow_high.get @x : tensor<4xf32>
    // CHECK: %half = glow_high.call @first(%x) : tensor<4xf32>
    %half = glow_high.call @first(%x) : tensor<4xf32>
    // CHECK: %y = glow_high.call @second(%half) {test.note = "last"} : tensor<4xf32>
    %y = glow_high.call @second(%half) {test.note = "last"} : tensor<4xf32>
    glow_high.save %y, @y
  }
}
