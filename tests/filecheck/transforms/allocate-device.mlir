// Buffers in the memory of a device begin where that asks for: at multiples of 256 bytes on a GPU.

// RUN: glow-opt %s -p allocate,verify-allocated | filecheck %s

#gpu = #glow.target<backend = "cuda", triple = "nvptx64-nvidia-cuda", cpu = "sm_80", features = "+ptx70", threads = 1024>
glow_high.constant @one : tensor<2xf32> {value = dense<1.0> : tensor<2xf32>}
glow_high.constant @two : tensor<2xf32> {value = dense<2.0> : tensor<2xf32>}
// CHECK: glow_low.func @main() attributes {{{.*}}activations = 512, activations_bound = 512, constants = 512} {
glow_low.func @main() attributes {target = #gpu} {
  // CHECK-NEXT: glow_low.weight @one {region = "constants", offset = 0}
  %one = glow_low.weight @one : memref<2xf32>
  // CHECK-NEXT: glow_low.weight @two {region = "constants", offset = 256}
  %two = glow_low.weight @two : memref<2xf32>
  // CHECK-NEXT: glow_low.alloc {offset = 0}
  %a = glow_low.alloc : memref<2xf32>
  // CHECK-NEXT: glow_low.alloc {offset = 256}
  %b = glow_low.alloc : memref<2xf32>
  glow_low.neg @out %a, @in %one
  glow_low.add @out %b, @in %a, @in %two
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
}
