// Operators that select elements by indices, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

glow_high.placeholder @x : tensor<2x3x4xf32> {input}
glow_high.placeholder @i : tensor<5x2xi64> {input}
glow_high.placeholder @j : tensor<2x1x4xi32> {input}
glow_high.placeholder @u : tensor<2x1x4xf32> {input}
glow_high.placeholder @w : tensor<5x4xf32> {input}
glow_high.placeholder @l : tensor<3xi64> {input}

// CHECK-LABEL: glow_high.func @taking(@x, @i, @j)
glow_high.func @taking(@x, @i, @j) {
  // CHECK-NEXT: %x = glow_high.get @x : tensor<2x3x4xf32>
  %x = glow_high.get @x : tensor<2x3x4xf32>
  // CHECK-NEXT: %i = glow_high.get @i : tensor<5x2xi64>
  %i = glow_high.get @i : tensor<5x2xi64>
  // CHECK-NEXT: %j = glow_high.get @j : tensor<2x1x4xi32>
  %j = glow_high.get @j : tensor<2x1x4xi32>
  // CHECK-NEXT: %gather = glow_high.gather %x, %i : tensor<5x2x3x4xf32>
  %gather = glow_high.gather %x, %i : tensor<5x2x3x4xf32>
  // CHECK-NEXT: %gather_1 = glow_high.gather %x, %i {axis = -1} : tensor<2x3x5x2xf32>
  %gather_1 = glow_high.gather %x, %i {axis = -1} : tensor<2x3x5x2xf32>
  // CHECK-NEXT: %gather_elements = glow_high.gather_elements %x, %j {axis = 1} : tensor<2x1x4xf32>
  %gather_elements = glow_high.gather_elements %x, %j {axis = 1} : tensor<2x1x4xf32>
  // CHECK-NEXT: %gather_elements_1 = glow_high.gather_elements %x, %j : tensor<2x1x4xf32>
  %gather_elements_1 = glow_high.gather_elements %x, %j : tensor<2x1x4xf32>
  // CHECK-NEXT: %gather_nd = glow_high.gather_nd %x, %i : tensor<5x4xf32>
  %gather_nd = glow_high.gather_nd %x, %i : tensor<5x4xf32>
  // CHECK-NEXT: %k = glow_high.splat {value = 0 : i32} : tensor<2x6x1xi32>
  %k = glow_high.splat {value = 0 : i32} : tensor<2x6x1xi32>
  // CHECK-NEXT: %gather_nd_1 = glow_high.gather_nd %x, %k {batch_dims = 1} : tensor<2x6x4xf32>
  %gather_nd_1 = glow_high.gather_nd %x, %k {batch_dims = 1} : tensor<2x6x4xf32>
}

// CHECK-LABEL: glow_high.func @replacing(@x, @i, @j, @u, @w)
glow_high.func @replacing(@x, @i, @j, @u, @w) {
  // CHECK-NEXT: %x = glow_high.get @x : tensor<2x3x4xf32>
  %x = glow_high.get @x : tensor<2x3x4xf32>
  // CHECK-NEXT: %i = glow_high.get @i : tensor<5x2xi64>
  %i = glow_high.get @i : tensor<5x2xi64>
  // CHECK-NEXT: %j = glow_high.get @j : tensor<2x1x4xi32>
  %j = glow_high.get @j : tensor<2x1x4xi32>
  // CHECK-NEXT: %u = glow_high.get @u : tensor<2x1x4xf32>
  %u = glow_high.get @u : tensor<2x1x4xf32>
  // CHECK-NEXT: %w = glow_high.get @w : tensor<5x4xf32>
  %w = glow_high.get @w : tensor<5x4xf32>
  // CHECK-NEXT: %scatter_elements = glow_high.scatter_elements %x, %j, %u {axis = 1} : tensor<2x3x4xf32>
  %scatter_elements = glow_high.scatter_elements %x, %j, %u {axis = 1} : tensor<2x3x4xf32>
  // CHECK-NEXT: %scatter_elements_1 = glow_high.scatter_elements %x, %j, %u {reduction = "add"} : tensor<2x3x4xf32>
  %scatter_elements_1 = glow_high.scatter_elements %x, %j, %u {reduction = "add"} : tensor<2x3x4xf32>
  // CHECK-NEXT: %scatter_nd = glow_high.scatter_nd %x, %i, %w : tensor<2x3x4xf32>
  %scatter_nd = glow_high.scatter_nd %x, %i, %w : tensor<2x3x4xf32>
  // CHECK-NEXT: %scatter_nd_1 = glow_high.scatter_nd %x, %i, %w {reduction = "max"} : tensor<2x3x4xf32>
  %scatter_nd_1 = glow_high.scatter_nd %x, %i, %w {reduction = "max"} : tensor<2x3x4xf32>
}

// CHECK-LABEL: glow_high.func @order(@x, @l)
glow_high.func @order(@x, @l) {
  // CHECK-NEXT: %x = glow_high.get @x : tensor<2x3x4xf32>
  %x = glow_high.get @x : tensor<2x3x4xf32>
  // CHECK-NEXT: %l = glow_high.get @l : tensor<3xi64>
  %l = glow_high.get @l : tensor<3xi64>
  // CHECK-NEXT: %reverse_sequence = glow_high.reverse_sequence %x, %l : tensor<2x3x4xf32>
  %reverse_sequence = glow_high.reverse_sequence %x, %l : tensor<2x3x4xf32>
  // CHECK-NEXT: %reverse_sequence_1 = glow_high.reverse_sequence %x, %l {batch_axis = -2, time_axis = 2} : tensor<2x3x4xf32>
  %reverse_sequence_1 = glow_high.reverse_sequence %x, %l {batch_axis = -2, time_axis = 2} : tensor<2x3x4xf32>
}
