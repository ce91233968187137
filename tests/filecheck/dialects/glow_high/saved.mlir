// Values that another function has saved, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @saved(%x: tensor<4x3xf32>, %kept: tensor<4x3xf32>, %other: tensor<4x3xf32>) {
  %0 = glow_high.relu %x : tensor<4x3xf32>
  %1 = glow_high.neg %x : tensor<4x3xf32>
  %2 = glow_high.saved %0, %kept : tensor<4x3xf32>
  %3, %4 = glow_high.saved %0, %1, %kept, %other : tensor<4x3xf32>, tensor<4x3xf32>
}
