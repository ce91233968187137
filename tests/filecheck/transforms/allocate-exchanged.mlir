// Inputs and outputs have places among the activations, as long as they are needed.

// RUN: glow-opt %s -p 'allocate{exchanged=true},verify-allocated' | filecheck %s
// RUN: glow-opt %s -p 'allocate{exchanged=true}' | glow-opt - | filecheck %s
// RUN: glow-opt %s -p allocate | filecheck %s --check-prefix=APART

// %a and %b are live at once, with %x before and %y behind them: two places of 128 bytes are enough.
// CHECK-LABEL: glow_low.func @chain(@x, @y)
// CHECK-SAME:    binding_offsets = [[[X:[0-9]+]], [[Y:[0-9]+]]]
// CHECK-SAME:    activations = 256, activations_bound = 256
// CHECK-NEXT:    %x = glow_low.weight @x {region = "bindings", offset = 0}
// CHECK:         %a = glow_low.alloc {offset = [[Y]]}
// CHECK:         %b = glow_low.alloc {offset = [[X]]}
// APART-LABEL: glow_low.func @chain(
// APART-NOT:     binding_offsets
glow_high.placeholder @x : tensor<20xf32> {input}
glow_high.placeholder @y : tensor<20xf32> {output}
glow_low.func @chain(@x, @y) {
  %x = glow_low.weight @x : memref<20xf32>
  %y = glow_low.weight @y {mutable} : memref<20xf32>
  %a = glow_low.alloc : memref<20xf32>
  glow_low.neg @out %a, @in %x
  %b = glow_low.alloc : memref<20xf32>
  glow_low.abs @out %b, @in %a
  glow_low.dealloc @out %a
  glow_low.exp @out %y, @in %b
  glow_low.dealloc @out %b
}

// An input that a loop reads is there as long as that runs, and an input that nothing reads until the function begins.
// State has no place here.
// CHECK-LABEL: glow_low.func @loop(@x, @unread, @count, @y)
// CHECK-SAME:    binding_offsets = [{{[0-9]+}}, {{[0-9]+}}, -1, {{[0-9]+}}]
// CHECK-SAME:    activations = 256, activations_bound = 256
glow_high.placeholder @unread : tensor<20xf32> {input}
glow_high.placeholder @count : tensor<20xf32> {state}
glow_low.func @loop(@x, @unread, @count, @y) {
  %x = glow_low.weight @x : memref<20xf32>
  %count = glow_low.weight @count {mutable} : memref<20xf32>
  %y = glow_low.weight @y {mutable} : memref<20xf32>
  glow_low.fill @out %y {value = 0.0 : f32}
  glow_low.loop %i = 3 {
    glow_low.add @out %y, @in %y, @in %x
    glow_low.copy @out %count, @in %y
  }
}
