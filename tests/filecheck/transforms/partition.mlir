// A function for each device, or several where values come back; the function itself calls them.

// RUN: glow-opt %s --split-input-file -p partition,verify-partitioned | filecheck %s
// RUN: glow-opt %s --split-input-file -p partition | glow-opt --split-input-file | filecheck %s

#devices = [#glow.device<"cpu:0", #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu">>, #glow.device<"interpreter:0", #glow.target<backend = "interpreter">>]
builtin.module attributes {glow.devices = #devices} {
  glow_high.constant @w : tensor<4xf32> {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}
  glow_high.placeholder @x : tensor<4xf32> {input}
  glow_high.placeholder @y : tensor<4xf32> {output}
  glow_high.placeholder @count : tensor<4xf32> {state}
  // CHECK: glow_high.placeholder @main.r : tensor<4xf32> {between}
  // CHECK: glow_high.placeholder @main.s : tensor<4xf32> {between}
  // CHECK: glow_high.placeholder @main.t : tensor<4xf32> {between}

  // Each has the constants and inputs that it reads, and the target of its device.
  // CHECK: glow_high.func @main_part_0(@x, @main.r) attributes {target = {{.*}}, device = "interpreter:0"} {
  // CHECK-NEXT: %x = glow_high.get @x : tensor<4xf32>
  // CHECK-NEXT: %r = glow_high.relu %x : tensor<4xf32>
  // CHECK-NEXT: glow_high.save %r, @main.r
  // CHECK: glow_high.func @main_part_1(@main.r, @main.s, @count) attributes {target = {{.*}}, device = "cpu:0"} {
  // CHECK: %s = glow_high.add %r, %count : tensor<4xf32>
  // CHECK: glow_high.func @main_part_2(@main.s, @main.t) attributes {target = {{.*}}, device = "interpreter:0"} {
  // CHECK: %w = glow_high.get @w : tensor<4xf32>
  // CHECK: glow_high.save %t, @main.t
  // CHECK-NEXT: }

  // State is on one device, which reads and saves it.
  // CHECK: glow_high.func @main_part_3(@main.t, @count) attributes {target = {{.*}}, device = "cpu:0"} {
  // CHECK: glow_high.func @main(@x, @count, @y) {
  // CHECK-NEXT: %x = glow_high.get @x : tensor<4xf32>
  // CHECK-NEXT: %r = glow_high.call @main_part_0(%x) : tensor<4xf32>
  // CHECK-NEXT: %s = glow_high.call @main_part_1(%r) : tensor<4xf32>
  // What is an output besides is given once.
  // CHECK-NEXT: %t = glow_high.call @main_part_2(%s) : tensor<4xf32>
  // CHECK-NEXT: glow_high.call @main_part_3(%t)
  // CHECK-NEXT: glow_high.save %t, @y
  glow_high.func @main(@x, @count, @y) {
    %x = glow_high.get @x : tensor<4xf32>
    %w = glow_high.get @w : tensor<4xf32>
    %r = glow_high.relu %x {glow.device = "interpreter:0"} : tensor<4xf32>
    %count = glow_high.get @count {mutable, glow.device = "cpu:0"} : tensor<4xf32>
    %s = glow_high.add %r, %count {glow.device = "cpu:0"} : tensor<4xf32>
    %t = glow_high.mul %s, %w {glow.device = "interpreter:0"} : tensor<4xf32>
    glow_high.save %t, @count {glow.device = "cpu:0"}
    glow_high.save %t, @y
  }
}

// -----

// What nothing between them waits for is one: the two sides of a diamond leave two parts for its ends.
#devices = [#glow.device<"interpreter:0", #glow.target<backend = "interpreter">>, #glow.device<"interpreter:1", #glow.target<backend = "interpreter">>]
builtin.module attributes {glow.devices = #devices} {
  glow_high.placeholder @x : tensor<4xf32> {input}
  glow_high.placeholder @y : tensor<4xf32> {output}
  // CHECK-COUNT-3: glow_high.func @main_part_
  // CHECK: glow_high.func @main(@x, @y) {
  glow_high.func @main(@x, @y) {
    %x = glow_high.get @x : tensor<4xf32>
    %a = glow_high.relu %x {glow.device = "interpreter:0"} : tensor<4xf32>
    %b = glow_high.exp %a {glow.device = "interpreter:1"} : tensor<4xf32>
    %c = glow_high.tanh %a {glow.device = "interpreter:0"} : tensor<4xf32>
    %d = glow_high.add %b, %c {glow.device = "interpreter:0"} : tensor<4xf32>
    glow_high.save %d, @y
  }
}

// -----

// What computes for itself does not wait because what comes behind it on its device does.
#devices = [#glow.device<"interpreter:0", #glow.target<backend = "interpreter">>, #glow.device<"interpreter:1", #glow.target<backend = "interpreter">>]
builtin.module attributes {glow.devices = #devices} {
  glow_high.placeholder @x : tensor<4xf32> {input}
  glow_high.placeholder @y : tensor<8xf32> {output}
  // CHECK: glow_high.func @main(@x, @y) {
  // CHECK: %a = glow_high.call @main_part_0(%x) : tensor<4xf32>
  // CHECK-NEXT: %b = glow_high.call @main_part_1(%x) : tensor<4xf32>
  // CHECK-NEXT: %y = glow_high.call @main_part_2(%a, %b) : tensor<8xf32>
  glow_high.func @main(@x, @y) {
    %x = glow_high.get @x : tensor<4xf32>
    %a = glow_high.exp %x {glow.device = "interpreter:0"} : tensor<4xf32>
    %b = glow_high.tanh %x {glow.device = "interpreter:1"} : tensor<4xf32>
    %c = glow_high.concat %a, %b {axis = 0, glow.device = "interpreter:0"} : tensor<8xf32>
    glow_high.save %c, @y
  }
}
