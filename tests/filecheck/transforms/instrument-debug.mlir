// What instructions write is copied to outputs of its own, right behind them.

// RUN: glow-opt %s -p instrument-debug,verify-low | filecheck %s
// RUN: glow-opt %s -p 'instrument-debug{only="fir*"},verify-low' | filecheck %s --check-prefix=NODE
// RUN: glow-opt %s -p 'instrument-debug{only="copy"},verify-low' | filecheck %s --check-prefix=KIND
// RUN: glow-opt %s -p 'instrument-debug{only="none"},verify-low' | filecheck %s --check-prefix=NONE
// RUN: glow-opt %s -p 'instrument-debug,instrument-debug{only="neg"},verify-low' | filecheck %s --check-prefix=TWICE

glow_high.placeholder @x : tensor<2x2xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x : memref<2x2xf32>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  %a = glow_low.alloc : memref<2x2xf32>
  %t = glow_low.view %a : memref<2x2xf32> to memref<2x2xf32, strided<[1, 2]>>
  glow_low.copy @out %t, @in %x loc("move")
  glow_low.relu @out %a, @in %a loc(fused["first", "b/c"])
  %v = glow_low.view %a : memref<2x2xf32> to memref<4xf32>
  %b = glow_low.alloc : memref<4xf32>
  glow_low.neg @out %b, @in %v loc("last")
  glow_low.copy @out %y, @in %b loc("last")
  glow_low.dealloc @out %b
  glow_low.dealloc @out %a
}

// CHECK:      glow_high.placeholder @y : tensor<4xf32> {output}
// CHECK-NEXT: glow_high.placeholder @debug_0_move : tensor<2x2xf32> {output, label = "debug.0.copy.move"}
// CHECK-NEXT: glow_high.placeholder @debug_1_first_b_c : tensor<2x2xf32> {output, label = "debug.1.relu.first+b/c"}
// CHECK-NEXT: glow_high.placeholder @debug_2_last : tensor<4xf32> {output, label = "debug.2.neg.last"}
// CHECK-NEXT: glow_low.func @main(@x, @y, @debug_0_move, @debug_1_first_b_c, @debug_2_last) {
// CHECK-DAG:    %debug_0_move = glow_low.weight @debug_0_move {mutable} : memref<2x2xf32>
// CHECK-DAG:    %debug_1_first_b_c = glow_low.weight @debug_1_first_b_c {mutable} : memref<2x2xf32>
// CHECK-DAG:    %debug_2_last = glow_low.weight @debug_2_last {mutable} : memref<4xf32>
// CHECK:        glow_low.copy @out %t, @in %x
// CHECK-NEXT:   glow_low.copy @out %debug_0_move, @in %t
// CHECK-NEXT:   glow_low.relu @out %a, @in %a
// CHECK-NEXT:   glow_low.copy @out %debug_1_first_b_c, @in %a
// CHECK:        glow_low.neg @out %b, @in %v
// CHECK-NEXT:   glow_low.copy @out %debug_2_last, @in %b
// CHECK-NEXT:   glow_low.copy @out %y, @in %b
// CHECK-NEXT:   glow_low.dealloc @out %b

// NODE:     label = "debug.0.relu.first+b/c"
// NODE-NOT: label

// KIND:     label = "debug.0.copy.move"
// KIND-NOT: label

// NONE-NOT: debug

// TWICE: @debug_2_last : tensor<4xf32> {output, label = "debug.2.neg.last"}
// TWICE: @debug_0_last : tensor<4xf32> {output, label = "debug.0.neg.last"}
