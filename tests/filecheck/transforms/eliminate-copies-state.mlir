// Operators that replace some elements of state change it in place, and later readers see what they wrote.

// RUN: glow-opt %s -p 'assign-target{target=avx2},glow-high-to-glow-low,eliminate-copies,share-buffers,verify-low' --split-input-file | filecheck %s

// Keys and values in pages: written, then read, in one call.
glow_high.placeholder @keys : tensor<32x2x8x16xf16> {state}
glow_high.placeholder @values : tensor<32x2x16x8xf16> {state}
glow_high.placeholder @rows : tensor<?x2x8xf32, #glow.sizes<[rows], rows = 1 to 64>> {input}
glow_high.placeholder @table : tensor<4x8xi64> {input}
glow_high.placeholder @sequences : tensor<?xi64, #glow.sizes<[rows], rows = 1 to 64>> {input}
glow_high.placeholder @positions : tensor<?xi64, #glow.sizes<[rows], rows = 1 to 64>> {input}
glow_high.placeholder @y : tensor<?x2x8xf32, #glow.sizes<[rows], rows = 1 to 64>> {output}
// CHECK-LABEL: @step
// CHECK-NOT:   glow_low.copy
// CHECK-NOT:   glow_low.alloc
// CHECK:       glow_low.write_pages @out %keys, @in %keys, @in %rows
// CHECK-NEXT:  glow_low.write_pages @out %values, @in %values, @in %rows
// CHECK-NEXT:  glow_low.paged_attention @out %y, @in %rows, @in %keys, @in %values
// CHECK-NEXT:  }
glow_high.func @step(@rows, @table, @sequences, @positions, @keys, @values, @y) {
  %rows = glow_high.get @rows : tensor<?x2x8xf32, #glow.sizes<[rows], rows = 1 to 64>>
  %table = glow_high.get @table : tensor<4x8xi64>
  %sequences = glow_high.get @sequences : tensor<?xi64, #glow.sizes<[rows], rows = 1 to 64>>
  %positions = glow_high.get @positions : tensor<?xi64, #glow.sizes<[rows], rows = 1 to 64>>
  %keys = glow_high.get @keys {mutable} : tensor<32x2x8x16xf16>
  %values = glow_high.get @values {mutable} : tensor<32x2x16x8xf16>
  %0 = glow_high.write_pages %keys, %rows, %table, %sequences, %positions {transposed = true} : tensor<32x2x8x16xf16>
  %1 = glow_high.write_pages %values, %rows, %table, %sequences, %positions : tensor<32x2x16x8xf16>
  %2 = glow_high.paged_attention %rows, %0, %1, %table, %sequences, %positions : tensor<?x2x8xf32, #glow.sizes<[rows], rows = 1 to 64>>
  glow_high.save %0, @keys
  glow_high.save %1, @values
  glow_high.save %2, @y
}

// -----

// Two scatters, and a sum of the new value.
glow_high.placeholder @memory : tensor<1000x64xf32> {state}
glow_high.placeholder @i : tensor<1x1xi64> {input}
glow_high.placeholder @u : tensor<1x64xf32> {input}
glow_high.placeholder @places : tensor<1000x1xi64> {input}
glow_high.placeholder @column : tensor<1000x1xf32> {input}
glow_high.placeholder @y : tensor<64xf32> {output}
// CHECK-LABEL: @scatters
// CHECK-NOT:   glow_low.copy
// CHECK-NOT:   glow_low.alloc
// CHECK:       glow_low.scatter_nd @out %m, @in %m, @in %i, @in %u
// CHECK-NEXT:  glow_low.scatter_elements @out %m, @in %m, @in %places, @in %column {axis = 1}
// CHECK-NEXT:  glow_low.reduce_sum @out %y, @in %m
// CHECK-NEXT:  }
glow_high.func @scatters(@i, @u, @places, @column, @memory, @y) {
  %m = glow_high.get @memory {mutable} : tensor<1000x64xf32>
  %i = glow_high.get @i : tensor<1x1xi64>
  %u = glow_high.get @u : tensor<1x64xf32>
  %places = glow_high.get @places : tensor<1000x1xi64>
  %column = glow_high.get @column : tensor<1000x1xf32>
  %0 = glow_high.scatter_nd %m, %i, %u : tensor<1000x64xf32>
  %1 = glow_high.scatter_elements %0, %places, %column {axis = 1} : tensor<1000x64xf32>
  %2 = glow_high.reduce_sum %1 {axes = [0], keepdims = false} : tensor<64xf32>
  glow_high.save %1, @memory
  glow_high.save %2, @y
}

// -----

// The old value is read behind the change: it stays, and the new value is copied to the state at the end.
glow_high.placeholder @memory : tensor<1000x64xf32> {state}
glow_high.placeholder @i : tensor<1x1xi64> {input}
glow_high.placeholder @u : tensor<1x64xf32> {input}
glow_high.placeholder @y : tensor<64xf32> {output}
// CHECK-LABEL: @keeps_the_old_value
// CHECK:       glow_low.scatter_nd @out %0, @in %m, @in %i, @in %u
// CHECK-NEXT:  glow_low.reduce_sum @out %y, @in %m
// CHECK-NEXT:  glow_low.copy @out %m, @in %0
glow_high.func @keeps_the_old_value(@i, @u, @memory, @y) {
  %m = glow_high.get @memory {mutable} : tensor<1000x64xf32>
  %i = glow_high.get @i : tensor<1x1xi64>
  %u = glow_high.get @u : tensor<1x64xf32>
  %0 = glow_high.scatter_nd %m, %i, %u : tensor<1000x64xf32>
  %1 = glow_high.reduce_sum %m {axes = [0], keepdims = false} : tensor<64xf32>
  glow_high.save %0, @memory
  glow_high.save %1, @y
}
