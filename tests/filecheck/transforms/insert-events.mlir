// A queue waits for what it needs of others, and not for what it is known to be behind.

// RUN: glow-opt %s -p insert-events,verify-low,verify-host-program | filecheck %s
// RUN: glow-opt %s -p insert-events,insert-events,verify-host-program | filecheck %s

#own = #glow.target<backend = "interpreter">
builtin.module attributes {glow.devices = [
  #glow.device<"interpreter:0", #own>, #glow.device<"interpreter:1", #own>, #glow.device<"interpreter:2", #own>
]} {
  glow_high.placeholder @x : tensor<4xf32> {input}
  glow_high.placeholder @y : tensor<4xf32> {output}
  glow_high.placeholder @a : tensor<4xf32> {between}
  glow_high.placeholder @b : tensor<4xf32> {between}
  glow_high.func @first(@x, @a) attributes {target = #own, device = "interpreter:0"} {
    %x = glow_high.get @x : tensor<4xf32>
    glow_high.save %x, @a
  }
  glow_high.func @second(@a, @b) attributes {target = #own, device = "interpreter:1"} {
    %a = glow_high.get @a : tensor<4xf32>
    glow_high.save %a, @b
  }
  glow_high.func @third(@a, @b, @y) attributes {target = #own, device = "interpreter:2"} {
    %a = glow_high.get @a : tensor<4xf32>
    %b = glow_high.get @b : tensor<4xf32>
    %c = glow_high.add %a, %b : tensor<4xf32>
    glow_high.save %c, @y
  }
  // CHECK: glow_low.func @main(@x, @y) {
  // CHECK: glow_low.call {{.*}}callee = @first
  // CHECK-NEXT: glow_low.record_event {queue = "interpreter:0", event = 0}
  // CHECK: glow_low.wait_event {queue = "interpreter:1", event = 0}
  // CHECK-NEXT: glow_low.call {{.*}}callee = @second
  // CHECK-NEXT: glow_low.record_event {queue = "interpreter:1", event = 1}
  // The third waits for the second, which has waited for the first.
  // CHECK-NEXT: glow_low.wait_event {queue = "interpreter:2", event = 1}
  // CHECK-NEXT: glow_low.call {{.*}}callee = @third
  // CHECK-NOT: _event
  glow_low.func @main(@x, @y) {
    %x = glow_low.weight @x : memref<4xf32>
    %y = glow_low.weight @y {mutable} : memref<4xf32>
    %a = glow_low.alloc {device = "interpreter:0"} : memref<4xf32>
    glow_low.call @out %a, @in %x {callee = @first, queue = "interpreter:0"}
    %b = glow_low.alloc {device = "interpreter:1"} : memref<4xf32>
    glow_low.call @out %b, @in %a {callee = @second, queue = "interpreter:1"}
    glow_low.call @out %y, @in %a, @in %b {callee = @third, queue = "interpreter:2"}
    glow_low.dealloc @out %a
    glow_low.dealloc @out %b
  }
}
