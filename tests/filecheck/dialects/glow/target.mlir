// The target of a function, in both dialects: fields in any order, those with their defaults left out.

// RUN: GLOW_ROUNDTRIP
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}

// CHECK: glow_high.func @named(@x, @y) attributes {target = #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v3", features = "+avx2,-fma", vector_bits = 256, l2_bytes = 262144, threads = 2, accuracy = "strict">} {
glow_high.func @named(@x, @y) attributes {target = #glow.target<threads = 2, backend = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v3", l2_bytes = 262144, pointer_bits = 64, vector_bits = 256, vector_registers = 16, features = "+avx2,-fma", accuracy = "strict">} {
  %x = glow_high.get @x : tensor<4xf32>
  glow_high.save %x, @y
}

// CHECK: glow_low.func @small(@x, @y) attributes {target = #glow.target<backend = "my-device", pointer_bits = 32, costs = {most_taps = 3, operations_per_byte = 8}>} {
glow_low.func @small(@x, @y) attributes {target = #glow.target<backend = "my-device", pointer_bits = 32, costs = {operations_per_byte = 8, most_taps = 3}>} {
  %x = glow_low.weight @x : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  glow_low.copy @out %y, @in %x
}

// What several functions have in common is printed once.

// RUN: glow-opt %s | filecheck %s --check-prefix=ALIAS
// ALIAS: #target = #glow.target<backend = "my-device", threads = 2>
// ALIAS: glow_low.func @one() attributes {target = #target}
// ALIAS: glow_low.func @other() attributes {target = #target}
glow_low.func @one() attributes {target = #glow.target<backend = "my-device", threads = 2>} {
}
glow_low.func @other() attributes {target = #glow.target<backend = "my-device", threads = 2>} {
}
