// Predicates, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @predicate(%x: tensor<4x3x5xf32>, %w: tensor<6x5xf32>, %b: tensor<6xf32>, %item: tensor<4xi1>, %row: tensor<4x3xi1>) {
  %shown = glow_high.predicate %x, %item : tensor<4x3x5xf32>
  %shown_1 = glow_high.predicate %x, %row : tensor<4x3x5xf32>
  %product = glow_high.predicated_matmul %x, %w, %row {transpose_right = true} : tensor<4x3x6xf32>
  %product_1 = glow_high.predicated_matmul %x, %w, %row, %b {transpose_right = true} : tensor<4x3x6xf32>
}
