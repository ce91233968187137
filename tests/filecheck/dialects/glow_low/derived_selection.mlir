// Instructions that are derived from operators whose results have as many elements as operands say, printed and parsed
// back.

// RUN: GLOW_UNCHANGED

glow_low.func @elements(@in %x: memref<3x4xf32>, @in %rows: memref<9x2xi32>) {
  %count = glow_low.alloc : memref<i64>
  %places = glow_low.alloc : memref<2x12xi64>
  %unique = glow_low.alloc : memref<9x2xi32>
  %indices = glow_low.alloc : memref<9xi64>
  %inverse = glow_low.alloc : memref<9xi64>
  %occurrences = glow_low.alloc : memref<9xi64>
  glow_low.non_zero @out %places, @out %count, @in %x
  glow_low.unique @out %unique, @out %indices, @out %inverse, @out %occurrences, @out %count, @in %rows {sorted = false}
}

glow_low.func @boxes(@in %boxes: memref<2x9x4xf32>, @in %scores: memref<2x3x9xf32>, @in %most: memref<i64>, @in %share: memref<f32>) {
  %count = glow_low.alloc : memref<i64>
  %chosen = glow_low.alloc : memref<30x3xi64>
  glow_low.non_max_suppression @out %chosen, @out %count, @in %boxes, @in %scores, @in %most, @in none, @in %share {limit = 5}
}
