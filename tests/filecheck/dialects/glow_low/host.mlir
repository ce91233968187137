// Instructions of host programs, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @t : tensor<4xf32> {between}
glow_high.func @part(@x, @t) attributes {device = "opencl:0"} {
  %x = glow_high.get @x : tensor<4xf32>
  glow_high.save %x, @t
}
glow_low.func @main(@x) {
  %x = glow_low.weight @x : memref<4xf32>
  // CHECK: %there = glow_low.alloc {device = "opencl:0"} : memref<4xf32>
  %there = glow_low.alloc {device = "opencl:0"} : memref<4xf32>
  // CHECK-NEXT: glow_low.transfer @out %there, @in %x {queue = "opencl:0"}
  glow_low.transfer @out %there, @in %x {queue = "opencl:0"}
  %t = glow_low.alloc {device = "opencl:0"} : memref<4xf32>
  // CHECK: glow_low.call @out %t, @in %there {callee = @part, queue = "opencl:0"}
  glow_low.call @out %t, @in %there {callee = @part, queue = "opencl:0"}
  // CHECK-NEXT: glow_low.record_event {queue = "opencl:0", event = 0}
  glow_low.record_event {queue = "opencl:0", event = 0}
  // CHECK-NEXT: glow_low.wait_event {queue = "cpu:0", event = 0}
  glow_low.wait_event {queue = "cpu:0", event = 0}
  glow_low.dealloc @out %there
  glow_low.dealloc @out %t
}
