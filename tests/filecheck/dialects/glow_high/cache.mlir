// Keys and values in one table, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @caches(%past: tensor<2x3x4x5xf16>, %rows: tensor<2x3x1x5xf16>, %starts: tensor<2xi64>, %ends: tensor<2xi32>) {
  %extend_cache = glow_high.extend_cache %past, %rows, %starts, %ends {length = 5} : tensor<2x3x5x5xf16>
}

glow_high.func @bounds(%past: tensor<1x3x?x5xf32, #glow.sizes<[past], past = 0 to 9>>, %rows: tensor<1x3x1x5xf32>, %starts: tensor<1xi64>, %ends: tensor<1xi64>) {
  %extend_cache = glow_high.extend_cache %past, %rows, %starts, %ends {length = #glow.sizes<[past + 1], past = 0 to 9>} : tensor<1x3x?x5xf32, #glow.sizes<[past + 1], past = 0 to 9>>
}
