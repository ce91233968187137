// What a copy would carry somewhere is written there at once, or read where it came from.

// RUN: glow-opt %s -p 'assign-target{target=avx2},eliminate-copies,verify-low' --split-input-file | filecheck %s

// CHECK-LABEL: glow_low.func @output(
// CHECK-NEXT:    glow_low.relu @out %y, @in %x
// CHECK-NEXT:  }
glow_low.func @output(@in %x: memref<4xf32>, @out %y: memref<4xf32>) {
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.relu @out %0, @in %x
  glow_low.copy @out %y, @in %0
  glow_low.dealloc @out %0
}

// -----

// Through a view, the allocation becomes a view of the output; a weight declared too late moves up.

// CHECK-LABEL: glow_low.func @view(
// CHECK-NEXT:    %[[V:.*]] = glow_low.view %y : memref<2x2xf32> to memref<4xf32>
// CHECK-NEXT:    glow_low.relu @out %[[V]], @in %x
// CHECK-NOT:     glow_low.copy
// CHECK-NOT:     glow_low.dealloc
glow_low.func @view(@in %x: memref<4xf32>, @out %y: memref<2x2xf32>) {
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.relu @out %0, @in %x
  %1 = glow_low.view %0 : memref<4xf32> to memref<2x2xf32>
  glow_low.copy @out %y, @in %1
  glow_low.dealloc @out %0
}

// -----

// A result with two outputs is written to one, and copied from there.

// CHECK-LABEL: glow_low.func @two(
// CHECK:         glow_low.relu @out %z, @in %x
// CHECK-NEXT:    glow_low.copy @out %y, @in %z
// CHECK-NEXT:  }
glow_low.func @two(@in %x: memref<4xf32>, @out %y: memref<4xf32>, @out %z: memref<4xf32>) {
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.relu @out %0, @in %x
  glow_low.copy @out %y, @in %0
  glow_low.copy @out %z, @in %0
  glow_low.dealloc @out %0
}

// -----

// The copy stays where the output is read while the allocation is written: it is state.

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
glow_low.func @written_again(@in %x: memref<4xf32>, @out %y: memref<4xf32>, @out %z: memref<4xf32>) {
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
glow_low.func @part(@in %x: memref<4xf32>, @out %y: memref<2xf32>, @out %z: memref<4xf32>) {
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.relu @out %0, @in %x
  %1 = glow_low.view %0 : memref<4xf32> to memref<2xf32, strided<[1], offset: 2>>
  glow_low.copy @out %y, @in %1
  glow_low.copy @out %z, @in %x
  glow_low.dealloc @out %0
}

// -----

// A transpose of sizes that run time tells is read where it is, through the strides of the largest shape.

// CHECK-LABEL: glow_low.func @symbols(
// CHECK:         %[[X:.*]] = glow_low.view %x : memref<?x?x6xf32, {{.*}} to memref<?x3x?x2xf32, strided<[48, 2, 6, 1]>, #glow.sizes<[B, L], B = 1 to 4, L = 1 to 8>>
// CHECK-NEXT:    glow_low.relu @out %y, @in %[[X]]
// CHECK-NEXT:  }
glow_low.func @symbols(@in %x: memref<?x?x6xf32, #glow.sizes<[B, L], B = 1 to 4, L = 1 to 8>>, @out %y: memref<?x3x?x2xf32, #glow.sizes<[B, L], B = 1 to 4, L = 1 to 8>>) {
  %0 = glow_low.view %x : memref<?x?x6xf32, #glow.sizes<[B, L], B = 1 to 4, L = 1 to 8>> to memref<?x3x?x2xf32, strided<[48, 2, 6, 1]>, #glow.sizes<[B, L], B = 1 to 4, L = 1 to 8>>
  %1 = glow_low.alloc : memref<?x3x?x2xf32, #glow.sizes<[B, L], B = 1 to 4, L = 1 to 8>>
  glow_low.copy @out %1, @in %0
  glow_low.relu @out %y, @in %1
  glow_low.dealloc @out %1
}
