// Operators that sample images between their elements, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

// CHECK-LABEL: glow_high.func @grid_sample(
glow_high.func @grid_sample(%x: tensor<2x5x6x3xf32>, %grid: tensor<2x7x8x2xf32>, %volume: tensor<1x2x3x4x1xi32>, %places: tensor<1x1x1x9x3xf64>) {
  // CHECK-NEXT: %grid_sample = glow_high.grid_sample %x, %grid : tensor<2x7x8x3xf32>
  %grid_sample = glow_high.grid_sample %x, %grid : tensor<2x7x8x3xf32>
  // CHECK-NEXT: %grid_sample_1 = glow_high.grid_sample %x, %grid {mode = "cubic", padding = "reflection", align_corners = true} : tensor<2x7x8x3xf32>
  %grid_sample_1 = glow_high.grid_sample %x, %grid {mode = "cubic", padding = "reflection", align_corners = true} : tensor<2x7x8x3xf32>
  // CHECK-NEXT: %grid_sample_2 = glow_high.grid_sample %volume, %places {mode = "nearest", padding = "border"} : tensor<1x1x1x9x1xi32>
  %grid_sample_2 = glow_high.grid_sample %volume, %places {mode = "nearest", padding = "border"} : tensor<1x1x1x9x1xi32>
}
