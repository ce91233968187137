// Buffers live from their first use to their last.

// RUN: glow-opt %s -p shorten-lifetimes,verify-low --split-input-file | filecheck %s

// CHECK-LABEL: glow_low.func @chain(
// CHECK:         %a = glow_low.alloc
// CHECK-NEXT:    glow_low.relu @out %a, @in %x
// CHECK-NEXT:    %b = glow_low.alloc
// CHECK-NEXT:    glow_low.neg @out %b, @in %a
// CHECK-NEXT:    glow_low.dealloc @out %a
// CHECK-NEXT:    glow_low.copy @out %y, @in %b
// CHECK-NEXT:    glow_low.dealloc @out %b
// CHECK-NEXT:  }
glow_low.func @chain(@in %x: memref<4xf32>, @out %y: memref<4xf32>) {
  %a = glow_low.alloc : memref<4xf32>
  %b = glow_low.alloc : memref<4xf32>
  glow_low.relu @out %a, @in %x
  glow_low.neg @out %b, @in %a
  glow_low.copy @out %y, @in %b
  glow_low.dealloc @out %b
  glow_low.dealloc @out %a
}

// -----

// A use through a view is a use of the allocation, also through two.

// CHECK-LABEL: glow_low.func @views(
// CHECK:         %a = glow_low.alloc
// CHECK-NEXT:    %v = glow_low.view %a
// CHECK-NEXT:    %w = glow_low.view %v
// CHECK-NEXT:    glow_low.relu @out %w, @in %x
// CHECK-NEXT:    glow_low.copy @out %y, @in %v
// CHECK-NEXT:    glow_low.dealloc @out %a
glow_low.func @views(@in %x: memref<2x2xf32>, @out %y: memref<4xf32>) {
  %a = glow_low.alloc : memref<4x1xf32>
  %v = glow_low.view %a : memref<4x1xf32> to memref<4xf32>
  %w = glow_low.view %v : memref<4xf32> to memref<2x2xf32>
  glow_low.relu @out %w, @in %x
  glow_low.copy @out %y, @in %v
  glow_low.dealloc @out %a
}

// -----

// What nothing uses goes, views included; a missing dealloc is added.

// CHECK-LABEL: glow_low.func @unused(
// CHECK-NOT:     %never
// CHECK-NOT:     %view
// CHECK:         %a = glow_low.alloc
// CHECK-NEXT:    glow_low.relu @out %a, @in %x
// CHECK-NEXT:    glow_low.dealloc @out %a
// CHECK-NEXT:  }
glow_low.func @unused(@in %x: memref<4xf32>) {
  %never = glow_low.alloc : memref<8xf32>
  %view = glow_low.view %never : memref<8xf32> to memref<2x4xf32>
  %view_again = glow_low.view %view : memref<2x4xf32> to memref<4x2xf32>
  %a = glow_low.alloc : memref<4xf32>
  glow_low.relu @out %a, @in %x
  glow_low.dealloc @out %never
}
