// What the way back of a differentiated function reads is computed again, rather than kept from the way there.

// RUN: glow-opt %s -p assign-target,rematerialize{percent=60} | filecheck %s
// RUN: glow-opt %s -p assign-target,rematerialize{percent=100} | filecheck %s --check-prefix=ALL

// Six layers: some of what they give is computed again in front of the gradient of the layer behind it.

// CHECK-LABEL: glow_high.func @layers(
// CHECK-COUNT-6: glow_high.tanh
// CHECK:         glow_high.mul
// CHECK:         glow_high.tanh
// CHECK:         glow_high.mul

// ALL-LABEL: glow_high.func @layers(
// ALL-COUNT-6:   glow_high.tanh
// ALL-NOT:       glow_high.tanh
glow_high.func @layers(%x: tensor<100xf32>) -> tensor<100xf32> {
  %1 = glow_high.tanh %x : tensor<100xf32>
  %2 = glow_high.tanh %1 : tensor<100xf32>
  %3 = glow_high.tanh %2 : tensor<100xf32>
  %4 = glow_high.tanh %3 : tensor<100xf32>
  %5 = glow_high.tanh %4 : tensor<100xf32>
  %6 = glow_high.tanh %5 : tensor<100xf32>
  %7 = glow_high.mul %6, %5 : tensor<100xf32>
  %8 = glow_high.mul %7, %4 : tensor<100xf32>
  %9 = glow_high.mul %8, %3 : tensor<100xf32>
  %10 = glow_high.mul %9, %2 : tensor<100xf32>
  %11 = glow_high.mul %10, %1 : tensor<100xf32>
  glow_high.return %11
}
