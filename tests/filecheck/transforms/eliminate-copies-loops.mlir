// Trips write rows of results and what they carry on in place.

// RUN: glow-opt %s -p 'assign-target{target=avx2},eliminate-copies,verify-low' | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},stack,eliminate-copies{inside=true},verify-low' | filecheck %s --check-prefix=STACKED

// A row goes straight into the output, backwards; another one is read where it is.

// CHECK-LABEL: glow_low.func @rows(
// CHECK-NEXT:    glow_low.loop %[[I:.*]] = 3 {
// CHECK-NEXT:      %[[A:.*]] = glow_low.window %x[%[[I]] by 4] : memref<3x4xf32> to memref<4xf32>
// CHECK-NEXT:      %[[B:.*]] = glow_low.window %y[%[[I]] by -4] : memref<3x4xf32> to memref<4xf32, strided<[1], offset: 8>>
// CHECK-NEXT:      glow_low.relu @out %[[B]], @in %[[A]]
// CHECK-NEXT:    }
// CHECK-NEXT:  }
glow_low.func @rows(@in %x: memref<3x4xf32>, @out %y: memref<3x4xf32>) {
  %stack = glow_low.alloc : memref<3x4xf32>
  glow_low.loop %i = 3 {
    %a = glow_low.window %x[%i by 4] : memref<3x4xf32> to memref<4xf32>
    %b = glow_low.window %stack[%i by -4] : memref<3x4xf32> to memref<4xf32, strided<[1], offset: 8>>
    %0 = glow_low.alloc : memref<4xf32>
    glow_low.copy @out %0, @in %a
    %1 = glow_low.alloc : memref<4xf32>
    glow_low.relu @out %1, @in %0
    glow_low.copy @out %b, @in %1
    glow_low.dealloc @out %0
    glow_low.dealloc @out %1
  }
  glow_low.copy @out %y, @in %stack
  glow_low.dealloc @out %stack
}

// Both read what both write: stacked they work in place, one after the other they cannot.

// CHECK-LABEL: glow_low.func @carried(
// CHECK:           glow_low.copy @out %{{.*}}, @in
// STACKED-LABEL: glow_low.func @carried(
// STACKED:           glow_low.loop %{{.*}} = 3 {
// STACKED-NEXT:        glow_low.stack @out %[[A:.*]], @out %[[B:.*]], @in %[[A]], @in %[[B]]
// STACKED-NOT:         glow_low.copy
// STACKED:           }
glow_low.func @carried(@in %x: memref<64x64xf32>, @in %z: memref<64x64xf32>, @out %y: memref<64x64xf32>) {
  %a = glow_low.alloc : memref<64x64xf32>
  glow_low.copy @out %a, @in %x
  %b = glow_low.alloc : memref<64x64xf32>
  glow_low.copy @out %b, @in %z
  glow_low.loop %i = 3 {
    %0 = glow_low.alloc : memref<64x64xf32>
    glow_low.add @out %0, @in %a, @in %b
    %1 = glow_low.alloc : memref<64x64xf32>
    glow_low.mul @out %1, @in %a, @in %b
    glow_low.copy @out %a, @in %0
    glow_low.copy @out %b, @in %1
    glow_low.dealloc @out %0
    glow_low.dealloc @out %1
  }
  glow_low.add @out %y, @in %a, @in %b
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
}

// A product reads all of what it would overwrite.

// STACKED-LABEL: glow_low.func @product(
// STACKED:           glow_low.matmul @out %[[N:.*]], @in %[[S:.*]], @in %w
// STACKED-NEXT:      glow_low.copy @out %[[S]], @in %[[N]]
glow_low.func @product(@in %w: memref<4x4xf32>, @inout %s: memref<1x4xf32>) {
  glow_low.loop %i = 3 {
    %0 = glow_low.alloc : memref<1x4xf32>
    glow_low.matmul @out %0, @in %s, @in %w
    glow_low.copy @out %s, @in %0
    glow_low.dealloc @out %0
  }
}
