// What a host program promises: memory that devices can use, and queues that wait for what they need.

// RUN: glow-opt %s --split-input-file --verify-diagnostics -p verify-host-program | filecheck %s

#own = #glow.target<backend = "interpreter">
builtin.module attributes {glow.devices = [#glow.device<"interpreter:0", #own, own_memory>]} {
  glow_high.placeholder @x : tensor<4xf32> {input}
  glow_high.placeholder @y : tensor<4xf32> {output}
  glow_high.func @part(@x, @y) attributes {target = #own, device = "interpreter:0"} {
    %x = glow_high.get @x : tensor<4xf32>
    glow_high.save %x, @y
  }
  glow_low.func @main(@x, @y) {
    %x = glow_low.weight @x : memref<4xf32>
    %y = glow_low.weight @y {mutable} : memref<4xf32>
    // expected-error@+1 {{interpreter:0 cannot use a buffer in the memory of the host}}
    glow_low.call @out %y, @in %x {callee = @part, queue = "interpreter:0"}
  }
}

// -----

#own = #glow.target<backend = "interpreter">
builtin.module attributes {glow.devices = [#glow.device<"interpreter:0", #own, own_memory>, #glow.device<"interpreter:1", #own, own_memory>]} {
  glow_low.func @main() {
    %a = glow_low.alloc {device = "interpreter:0"} : memref<4xf32>
    %b = glow_low.alloc {device = "interpreter:1"} : memref<4xf32>
    // expected-error@+1 {{a transfer goes from a device to the host, or back}}
    glow_low.transfer @out %b, @in %a {queue = "interpreter:0"}
    glow_low.dealloc @out %a
    glow_low.dealloc @out %b
  }
}

// -----

#own = #glow.target<backend = "interpreter">
builtin.module attributes {glow.devices = [#glow.device<"interpreter:0", #own, own_memory>, #glow.device<"interpreter:1", #own, own_memory>]} {
  glow_low.func @main() {
    %a = glow_low.alloc {device = "interpreter:0"} : memref<4xf32>
    %b = glow_low.alloc : memref<4xf32>
    // expected-error@+1 {{the queue of interpreter:1 is at neither end of the transfer}}
    glow_low.transfer @out %b, @in %a {queue = "interpreter:1"}
    glow_low.dealloc @out %a
    glow_low.dealloc @out %b
  }
}

// -----

#own = #glow.target<backend = "interpreter">
builtin.module attributes {glow.devices = [#glow.device<"interpreter:0", #own>, #glow.device<"interpreter:1", #own>]} {
  glow_high.placeholder @x : tensor<4xf32> {input}
  glow_high.placeholder @y : tensor<4xf32> {output}
  glow_high.placeholder @a : tensor<4xf32> {between}
  glow_high.func @first(@x, @a) attributes {target = #own, device = "interpreter:0"} {
    %x = glow_high.get @x : tensor<4xf32>
    glow_high.save %x, @a
  }
  glow_high.func @second(@a, @y) attributes {target = #own, device = "interpreter:1"} {
    %a = glow_high.get @a : tensor<4xf32>
    glow_high.save %a, @y
  }
  glow_low.func @main(@x, @y) {
    %x = glow_low.weight @x : memref<4xf32>
    %y = glow_low.weight @y {mutable} : memref<4xf32>
    %a = glow_low.alloc : memref<4xf32>
    glow_low.call @out %a, @in %x {callee = @first, queue = "interpreter:0"}
    // expected-error@+1 {{the queue of interpreter:1 does not wait for what interpreter:0 does in glow_low.call}}
    glow_low.call @out %y, @in %a {callee = @second, queue = "interpreter:1"}
    glow_low.dealloc @out %a
  }
}

// -----

builtin.module attributes {glow.devices = [#glow.device<"interpreter:0", #glow.target<backend = "interpreter">>]} {
  glow_low.func @main() {
    // expected-error@+1 {{event 0 is recorded behind who waits for it}}
    glow_low.wait_event {queue = "interpreter:0", event = 0}
    glow_low.record_event {queue = "interpreter:0", event = 0}
  }
}

// -----

builtin.module attributes {glow.devices = [#glow.device<"interpreter:0", #glow.target<backend = "interpreter">>]} {
  glow_low.func @main() {
    glow_low.record_event {queue = "interpreter:0", event = 0}
    // expected-error@+1 {{event 0 is recorded twice}}
    glow_low.record_event {queue = "interpreter:0", event = 0}
  }
}

// -----

// What is right is printed.
// CHECK: glow_high.func @fine()
glow_high.func @fine() {
}
