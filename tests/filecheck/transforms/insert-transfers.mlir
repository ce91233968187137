// A device with memory of its own gets copies of what it reads, and what it writes comes back; others share buffers.

// RUN: glow-opt %s -p glow-high-to-glow-low,insert-transfers,shorten-lifetimes,verify-low | filecheck %s
// RUN: glow-opt %s -p glow-high-to-glow-low,insert-transfers,insert-transfers,shorten-lifetimes,verify-low | filecheck %s

#own = #glow.target<backend = "interpreter">
builtin.module attributes {glow.devices = [
  #glow.device<"interpreter:0", #own, own_memory>, #glow.device<"interpreter:1", #own, own_memory>,
  #glow.device<"interpreter:2", #own>, #glow.device<"interpreter:3", #own>
]} {
  glow_high.placeholder @x : tensor<4xf32> {input}
  glow_high.placeholder @y : tensor<4xf32> {output}
  glow_high.placeholder @a : tensor<4xf32> {between}
  glow_high.placeholder @b : tensor<4xf32> {between}
  glow_high.placeholder @c : tensor<4xf32> {between}
  glow_high.func @first(@x, @a) attributes {target = #own, device = "interpreter:0"} {
    %x = glow_high.get @x : tensor<4xf32>
    %a = glow_high.relu %x : tensor<4xf32>
    glow_high.save %a, @a
  }
  glow_high.func @second(@x, @a, @b) attributes {target = #own, device = "interpreter:1"} {
    %x = glow_high.get @x : tensor<4xf32>
    %a = glow_high.get @a : tensor<4xf32>
    %b = glow_high.add %a, %x : tensor<4xf32>
    glow_high.save %b, @b
  }
  glow_high.func @third(@a, @b, @c) attributes {target = #own, device = "interpreter:2"} {
    %a = glow_high.get @a : tensor<4xf32>
    %b = glow_high.get @b : tensor<4xf32>
    %c = glow_high.add %a, %b : tensor<4xf32>
    glow_high.save %c, @c
  }
  glow_high.func @last(@c, @y) attributes {target = #own, device = "interpreter:3"} {
    %c = glow_high.get @c : tensor<4xf32>
    %y = glow_high.tanh %c : tensor<4xf32>
    glow_high.save %y, @y
  }
  // CHECK: glow_low.func @main(@x, @y) {
  // The input goes to both devices that read it, before anything runs.
  // CHECK: glow_low.transfer @out [[THERE:%x_?[0-9]*]], @in %x {queue = "interpreter:0"}
  // CHECK: glow_low.transfer @out [[ALSO:%x_?[0-9]*]], @in %x {queue = "interpreter:1"}
  // CHECK: glow_low.call @out %a, @in [[THERE]] {callee = @first, queue = "interpreter:0"}
  // From one of them to the other a value goes by way of the host, which gets it once.
  // CHECK: glow_low.transfer @out [[HOST:%a_[0-9]+]], @in %a {queue = "interpreter:0"}
  // CHECK: glow_low.transfer @out [[A:%a_[0-9]+]], @in [[HOST]] {queue = "interpreter:1"}
  // CHECK: glow_low.call @out %b, @in [[ALSO]], @in [[A]] {callee = @second, queue = "interpreter:1"}
  // CHECK: glow_low.transfer @out [[B:%b_[0-9]+]], @in %b {queue = "interpreter:1"}
  // CHECK: glow_low.call @out %c, @in [[HOST]], @in [[B]] {callee = @third, queue = "interpreter:2"}
  // CHECK-NOT: glow_low.transfer
  // CHECK: glow_low.call @out %y, @in %c {callee = @last, queue = "interpreter:3"}
  glow_high.func @main(@x, @y) {
    %x = glow_high.get @x : tensor<4xf32>
    %a = glow_high.call @first(%x) : tensor<4xf32>
    %b = glow_high.call @second(%x, %a) : tensor<4xf32>
    %c = glow_high.call @third(%a, %b) : tensor<4xf32>
    %y = glow_high.call @last(%c) : tensor<4xf32>
    glow_high.save %y, @y
  }
}
