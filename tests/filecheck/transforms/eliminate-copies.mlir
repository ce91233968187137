// What a copy would carry to an output is written there at once.

// RUN: glow-opt %s -p eliminate-copies,verify-low --split-input-file | filecheck %s

// CHECK-LABEL: glow_low.func @output(
// CHECK-NEXT:    %x = glow_low.weight @x
// CHECK-NEXT:    %y = glow_low.weight @y {mutable}
// CHECK-NEXT:    glow_low.relu @out %y, @in %x
// CHECK-NEXT:  }
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_low.func @output(@x, @y) {
  %x = glow_low.weight @x : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.relu @out %0, @in %x
  glow_low.copy @out %y, @in %0
  glow_low.dealloc @out %0
}

// -----

// Through a view, the allocation becomes a view of the output; a weight declared too late moves up.

// CHECK-LABEL: glow_low.func @view(
// CHECK-NEXT:    %x = glow_low.weight @x
// CHECK-NEXT:    %y = glow_low.weight @y {mutable}
// CHECK-NEXT:    %[[V:.*]] = glow_low.view %y : memref<2x2xf32> to memref<4xf32>
// CHECK-NEXT:    glow_low.relu @out %[[V]], @in %x
// CHECK-NOT:     glow_low.copy
// CHECK-NOT:     glow_low.dealloc
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<2x2xf32> {output}
glow_low.func @view(@x, @y) {
  %x = glow_low.weight @x : memref<4xf32>
  %0 = glow_low.alloc : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<2x2xf32>
  glow_low.relu @out %0, @in %x
  %1 = glow_low.view %0 : memref<4xf32> to memref<2x2xf32>
  glow_low.copy @out %y, @in %1
  glow_low.dealloc @out %0
}

// -----

// A result with two outputs is written to one, and copied from there.

// CHECK-LABEL: glow_low.func @two(
// CHECK:         glow_low.relu @out %y, @in %x
// CHECK-NEXT:    glow_low.copy @out %z, @in %y
// CHECK-NEXT:  }
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @z : tensor<4xf32> {output}
glow_low.func @two(@x, @y, @z) {
  %x = glow_low.weight @x : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  %z = glow_low.weight @z {mutable} : memref<4xf32>
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.relu @out %0, @in %x
  glow_low.copy @out %y, @in %0
  glow_low.copy @out %z, @in %0
  glow_low.dealloc @out %0
}

// -----

// The copy stays where the output is read as well: it is state.

// CHECK-LABEL: glow_low.func @state(
// CHECK:         glow_low.copy
glow_high.placeholder @s : tensor<4xf32> {state}
glow_low.func @state(@s) {
  %s = glow_low.weight @s {mutable} : memref<4xf32>
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.softmax @out %0, @in %s
  glow_low.copy @out %s, @in %0
  glow_low.dealloc @out %0
}

// -----

// … or where the allocation is written again …

// CHECK-LABEL: glow_low.func @written_again(
// CHECK:         glow_low.copy @out %y,
// CHECK-NOT:     glow_low.copy
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @z : tensor<4xf32> {output}
glow_low.func @written_again(@x, @y, @z) {
  %x = glow_low.weight @x : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  %z = glow_low.weight @z {mutable} : memref<4xf32>
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.relu @out %0, @in %x
  glow_low.copy @out %y, @in %0
  glow_low.neg @out %0, @in %x
  glow_low.copy @out %z, @in %0
  glow_low.dealloc @out %0
}

// -----

// … or is larger than what is copied, or the copy is from an input.

// CHECK-LABEL: glow_low.func @part(
// CHECK:         glow_low.copy @out %y,
// CHECK:         glow_low.copy @out %z, @in %x
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<2xf32> {output}
glow_high.placeholder @z : tensor<4xf32> {output}
glow_low.func @part(@x, @y, @z) {
  %x = glow_low.weight @x : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<2xf32>
  %z = glow_low.weight @z {mutable} : memref<4xf32>
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.relu @out %0, @in %x
  %1 = glow_low.view %0 : memref<4xf32> to memref<2xf32, strided<[1], offset: 2>>
  glow_low.copy @out %y, @in %1
  glow_low.copy @out %z, @in %x
  glow_low.dealloc @out %0
}
