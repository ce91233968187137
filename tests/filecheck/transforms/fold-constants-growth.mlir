// Constants that double each time end at `total` bytes, or at eight times what constants had before; over all runs.

// RUN: glow-opt %s -p 'fold-constants{expansion=1 limit=64 total=512}' | filecheck %s
// RUN: glow-opt %s -p 'fold-constants{expansion=1 limit=64 total=512},fold-constants{expansion=1 limit=64 total=512}' | filecheck %s
// RUN: glow-opt %s -p 'fold-constants{expansion=1 limit=64 total=2048}' | filecheck %s --check-prefix=MORE

glow_high.constant @a : tensor<16xf32> {value = dense<1.0> : tensor<16xf32>}

// An operand that is read twice is there once: what doubles it grows.
// CHECK-LABEL: glow_high.func @twice(
// CHECK-COUNT-1: glow_high.concat
// CHECK-NOT:     glow_high.concat
glow_high.func @twice() -> tensor<32xf32> {
  %a = glow_high.get @a : tensor<16xf32>
  %0 = glow_high.concat %a, %a {axis = 0} : tensor<32xf32>
  glow_high.return %0
}

// 128 and 256 bytes of concatenations, with as much of negations, leave no room for 512 more; 2,048 bytes do.
// CHECK-LABEL: glow_high.func @doubled(
// CHECK:         glow_high.concat %{{.*}} : tensor<128xf32>
// MORE-LABEL:  glow_high.func @doubled(
// MORE-NOT:      glow_high.concat
glow_high.func @doubled() -> tensor<128xf32> {
  %a = glow_high.get @a : tensor<16xf32>
  %b = glow_high.neg %a : tensor<16xf32>
  %0 = glow_high.concat %a, %b {axis = 0} : tensor<32xf32>
  %1 = glow_high.neg %0 : tensor<32xf32>
  %2 = glow_high.concat %0, %1 {axis = 0} : tensor<64xf32>
  %3 = glow_high.neg %2 : tensor<64xf32>
  %4 = glow_high.concat %2, %3 {axis = 0} : tensor<128xf32>
  glow_high.return %4
}
