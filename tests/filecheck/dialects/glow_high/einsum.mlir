// Einstein summation, printed and parsed back, and what it becomes.

// RUN: GLOW_UNCHANGED
// RUN: glow-opt %s -p 'assign-target{target=avx2},lower' | filecheck %s --check-prefix=LOWERED

// Attention: what is summed lies last in both operands, so that only their batches are brought together.

// LOWERED-LABEL: glow_high.func @attention(
// LOWERED:         %[[Q:.*]] = glow_high.transpose %q {permutation = [0, 2, 1, 3]} : tensor<2x4x8x16xf32>
// LOWERED:         %[[K:.*]] = glow_high.transpose %k {permutation = [0, 2, 1, 3]} : tensor<2x4x9x16xf32>
// LOWERED:         glow_high.matmul %{{.*}}, %{{.*}} {transpose_right = true} : tensor<2x4x8x9xf32>
// LOWERED-NOT:     glow_high.einsum
glow_high.func @attention(%q: tensor<2x8x4x16xf32>, %k: tensor<2x9x4x16xf32>) -> tensor<2x4x8x9xf32> {
  %einsum = glow_high.einsum %q, %k {equation = "bqhd,bkhd->bhqk"} : tensor<2x4x8x9xf32>
  glow_high.return %einsum
}

// An axis that is named twice is a diagonal.

// LOWERED-LABEL: glow_high.func @trace(
// LOWERED:         %[[FLAT:.*]] = glow_high.reshape %m {shape = [9]} : tensor<9xf32>
// LOWERED-NEXT:    %[[DIAGONAL:.*]] = glow_high.slice %[[FLAT]] {starts = [0], ends = [9], steps = [4]} : tensor<3xf32>
// LOWERED-NEXT:    glow_high.reduce_sum %[[DIAGONAL]] {axes = [0], keepdims = false} : tensor<f32>
glow_high.func @trace(%m: tensor<3x3xf32>) -> tensor<f32> {
  %einsum = glow_high.einsum %m {equation = "ii->"} : tensor<f32>
  glow_high.return %einsum
}
