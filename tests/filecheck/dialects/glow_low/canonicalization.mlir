// Views of views are views of the allocation, and what changes nothing goes.

// RUN: glow-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: glow_low.func @views(
// CHECK:         %[[ROW:.*]] = glow_low.view %x : memref<4x4xf32> to memref<4xf32, strided<[1], offset: 4>>
// CHECK-NEXT:    glow_low.relu @out %y, @in %[[ROW]]
// CHECK-NEXT:    glow_low.neg @out %z, @in %x
// CHECK-NEXT:  }
glow_low.func @views(@in %x: memref<4x4xf32>, @out %y: memref<4xf32>, @out %z: memref<4x4xf32>) {
  %0 = glow_low.view %x : memref<4x4xf32> to memref<2x4xf32, strided<[8, 1], offset: 4>>
  %1 = glow_low.view %0 : memref<2x4xf32, strided<[8, 1], offset: 4>> to memref<4xf32, strided<[1], offset: 4>>
  glow_low.relu @out %y, @in %1
  %2 = glow_low.view %x : memref<4x4xf32> to memref<4x4xf32>
  glow_low.neg @out %z, @in %2
}

// A copy to another part stays, one to itself does not, nor one of nothing.

// CHECK-LABEL: glow_low.func @copies(
// CHECK:         glow_low.copy @out %y, @in %{{.*}}
// CHECK-NEXT:    %[[A:.*]] = glow_low.view %z
// CHECK-NEXT:    %[[B:.*]] = glow_low.view %z
// CHECK-NEXT:    glow_low.copy @out %[[A]], @in %[[B]]
// CHECK-NEXT:  }
glow_low.func @copies(@in %x: memref<4x4xf32>, @out %e: memref<0xf32>, @out %y: memref<4xf32>, @out %z: memref<4x4xf32>) {
  %0 = glow_low.view %x : memref<4x4xf32> to memref<4xf32>
  %1 = glow_low.view %x : memref<4x4xf32> to memref<0xf32>
  glow_low.copy @out %y, @in %0
  glow_low.copy @out %e, @in %1
  %2 = glow_low.view %z : memref<4x4xf32> to memref<4xf32, strided<[1], offset: 4>>
  %3 = glow_low.view %z : memref<4x4xf32> to memref<4xf32, strided<[1], offset: 8>>
  %4 = glow_low.view %z : memref<4x4xf32> to memref<4xf32, strided<[1], offset: 8>>
  glow_low.copy @out %2, @in %3
  glow_low.copy @out %3, @in %4
}

// Windows of one type are the same buffer where they move alike.

// CHECK-LABEL: glow_low.func @windows(
// CHECK:         glow_low.loop
// CHECK:           glow_low.copy @out
// CHECK-NEXT:    }
glow_low.func @windows(@out %z: memref<4x4xf32>) {
  glow_low.loop %i = 2 {
    %a = glow_low.window %z[%i by 8] : memref<4x4xf32> to memref<4xf32>
    %b = glow_low.window %z[%i by 4] : memref<4x4xf32> to memref<4xf32>
    %c = glow_low.window %z[%i by 4] : memref<4x4xf32> to memref<4xf32>
    glow_low.copy @out %c, @in %b
    glow_low.copy @out %a, @in %b
  }
}
