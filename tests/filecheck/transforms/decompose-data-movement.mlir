// What moves elements is copies between views.

// RUN: glow-opt %s -p decompose-data-movement,verify-low --split-input-file | filecheck %s

// CHECK-LABEL: glow_low.func @concat(
// CHECK:         %[[A:.*]] = glow_low.view %z : memref<2x5xf32> to memref<2x3xf32, strided<[5, 1]>>
// CHECK-NEXT:    glow_low.copy @out %[[A]], @in %x
// CHECK-NEXT:    %[[B:.*]] = glow_low.view %z : memref<2x5xf32> to memref<2x2xf32, strided<[5, 1], offset: 3>>
// CHECK-NEXT:    glow_low.copy @out %[[B]], @in %y
// CHECK-NEXT:  }
glow_low.func @concat(@in %x: memref<2x3xf32>, @in %y: memref<2x2xf32>, @out %z: memref<2x5xf32>) {
  glow_low.concat @out %z, @in %x, @in %y {axis = 1}
}

// -----

// A slice of a view; steps are strides.

// CHECK-LABEL: glow_low.func @slice(
// CHECK:         %[[V:.*]] = glow_low.view %0 : memref<2x4xf32, strided<[8, 2], offset: 1>> to memref<1x2xf32, strided<[8, 4], offset: 11>>
// CHECK-NEXT:    glow_low.copy @out %y, @in %[[V]]
glow_low.func @slice(@in %x: memref<2x8xf32>, @out %y: memref<1x2xf32>) {
  %0 = glow_low.view %x : memref<2x8xf32> to memref<2x4xf32, strided<[8, 2], offset: 1>>
  glow_low.slice @out %y, @in %0 {starts = [1, 1], ends = [2, 4], steps = [1, 2]}
}

// -----

// CHECK-LABEL: glow_low.func @transpose(
// CHECK:         %[[V:.*]] = glow_low.view %x : memref<2x3x4xf32> to memref<4x2x3xf32, strided<[1, 12, 4]>>
// CHECK-NEXT:    glow_low.copy @out %y, @in %[[V]]
glow_low.func @transpose(@in %x: memref<2x3x4xf32>, @out %y: memref<4x2x3xf32>) {
  glow_low.transpose @out %y, @in %x {permutation = [2, 0, 1]}
}

// -----

// Repeated elements are a step of 0 apart.

// CHECK-LABEL: glow_low.func @expand(
// CHECK:         %[[V:.*]] = glow_low.view %x : memref<2x1xf32> to memref<3x2x4xf32, strided<[0, 1, 0]>>
// CHECK-NEXT:    glow_low.copy @out %y, @in %[[V]]
glow_low.func @expand(@in %x: memref<2x1xf32>, @out %y: memref<3x2x4xf32>) {
  glow_low.expand @out %y, @in %x {shape = [3, 2, 4]}
}

// -----

// The border of a pad is as few boxes as possible; its value comes from a constant or a splat.

// CHECK-LABEL: glow_low.func @pad(
// CHECK:         %[[INSIDE:.*]] = glow_low.view %y : memref<4x5xf32> to memref<2x3xf32, strided<[5, 1], offset: 6>>
// CHECK-NEXT:    glow_low.copy @out %[[INSIDE]], @in %x
// CHECK-NEXT:    %[[TOP:.*]] = glow_low.view %y : memref<4x5xf32> to memref<1x5xf32>
// CHECK-NEXT:    %[[BOTTOM:.*]] = glow_low.view %y : memref<4x5xf32> to memref<1x5xf32, strided<[5, 1], offset: 15>>
// CHECK-NEXT:    %[[LEFT:.*]] = glow_low.view %y : memref<4x5xf32> to memref<2x1xf32, strided<[5, 1], offset: 5>>
// CHECK-NEXT:    %[[RIGHT:.*]] = glow_low.view %y : memref<4x5xf32> to memref<2x1xf32, strided<[5, 1], offset: 9>>
// CHECK-NEXT:    glow_low.fill @out %[[TOP]], @out %[[BOTTOM]], @out %[[LEFT]], @out %[[RIGHT]] {value = 0.0}
// CHECK:         glow_low.fill @out %{{.*}} {value = -1.5}
// CHECK:         glow_low.fill @out %{{.*}} {value = 2.0}
glow_high.constant @c : tensor<f32> {value = dense<-1.5> : tensor<f32>}
glow_low.func @pad(@in %x: memref<2x3xf32>, @out %y: memref<4x5xf32>, @out %z: memref<3x3xf32>, @out %w: memref<3x3xf32>) {
  %c = glow_low.weight @c : memref<f32>
  %s = glow_low.alloc : memref<f32>
  glow_low.splat @out %s {value = 2.0 : f32}
  glow_low.pad @out %y, @in %x {pads = [1, 1, 1, 1]}
  glow_low.pad @out %z, @in %x, @in %c {pads = [1, 0, 0, 0]}
  glow_low.pad @out %w, @in %x, @in %s {pads = [0, 0, 1, 0]}
  glow_low.dealloc @out %s
}

// -----

// These are no copies: elements that come backwards, a mirror, a value known at run time only, also of codes.

// CHECK-LABEL: glow_low.func @stays(
// CHECK:         glow_low.slice
// CHECK-NEXT:    glow_low.pad @out %r
// CHECK-NEXT:    glow_low.pad @out %s
// CHECK-NEXT:    glow_low.pad @out %p
// CHECK-NEXT:  }
glow_low.func @stays(@in %x: memref<4xf32>, @in %v: memref<f32>, @in %q: memref<4x!quant.uniform<u8:f32, 0.5:7>>,
    @out %y: memref<4xf32>, @out %r: memref<6xf32>, @out %s: memref<6xf32>, @out %p: memref<6x!quant.uniform<u8:f32, 0.5:7>>) {
  glow_low.slice @out %y, @in %x {starts = [3], ends = [-1], steps = [-1]}
  glow_low.pad @out %r, @in %x {pads = [1, 1], mode = "reflect"}
  glow_low.pad @out %s, @in %x, @in %v {pads = [1, 1]}
  glow_low.pad @out %p, @in %q {pads = [1, 1], mode = "edge"}
}

// -----

// What has no elements needs no copy.

// CHECK-LABEL: glow_low.func @empty(
// CHECK-NOT:     glow_low.concat
// CHECK:         glow_low.copy @out %y, @in %x
// CHECK-NEXT:  }
glow_low.func @empty(@in %x: memref<4xf32>, @in %e: memref<0xf32>, @out %y: memref<4xf32>) {
  glow_low.concat @out %y, @in %e, @in %x, @in %e {axis = 0}
}
