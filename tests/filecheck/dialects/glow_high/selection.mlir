// Operators whose results have as many elements as their operands say, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @elements(%x: tensor<3x4xf32>, %rows: tensor<9x2xi32>) {
  %places, %count = glow_high.non_zero %x : tensor<2x12xi64>, tensor<i64>
  %unique, %indices, %inverse, %occurrences, %count_1 = glow_high.unique %rows : tensor<9x2xi32>, tensor<9xi64>, tensor<9xi64>, tensor<9xi64>, tensor<i64>
  %unique_1, %indices_1, %inverse_1, %occurrences_1, %count_2 = glow_high.unique %rows {sorted = false} : tensor<9x2xi32>, tensor<9xi64>, tensor<9xi64>, tensor<9xi64>, tensor<i64>
}

glow_high.func @boxes(%boxes: tensor<2x9x4xf32>, %scores: tensor<2x3x9xf32>, %most: tensor<i64>, %share: tensor<1xf32>) {
  %chosen, %count = glow_high.non_max_suppression %boxes, %scores, %most, %share {limit = 5} : tensor<30x3xi64>, tensor<i64>
  %chosen_1, %count_1 = glow_high.non_max_suppression %boxes, %scores, %most, none, %share {limit = 9, center_point_box = true} : tensor<54x3xi64>, tensor<i64>
}
