// Functions that say their target themselves: parts and threads have to fit to it.

// RUN: glow-opt %s -p verify-selected --split-input-file --verify-diagnostics | filecheck %s

// What fits.

// CHECK-COUNT-1: glow_low.copy
glow_low.func @main(@in %x: memref<4096xf32>, @out %y: memref<4096xf32>) attributes {target = #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu", threads = 2>} {
  glow_low.copy @out %y, @in %x {kernel = "copy", partitions = {lines = 4}}
}

// -----

glow_low.func @main(@in %x: memref<4096xf32>, @out %y: memref<4096xf32>) attributes {target = #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu">} {
  // expected-error @below {{there are 'partitions' in a function for one thread}}
  glow_low.copy @out %y, @in %x {kernel = "copy", partitions = {lines = 4}}
}

// -----

// expected-error @below {{the target of @main cannot be: threads=1025 is no number of threads}}
glow_low.func @main(@in %x: memref<4096xf32>, @out %y: memref<4096xf32>) attributes {target = #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu", threads = 1025>} {
  glow_low.copy @out %y, @in %x {kernel = "copy"}
}
