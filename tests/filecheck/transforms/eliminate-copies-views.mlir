// Copies out of views and into them: what they carry is written or read in place.

// RUN: glow-opt %s -p 'assign-target{target=avx2},eliminate-copies,verify-low' --split-input-file | filecheck %s

// Concats of concats are one buffer; their parts are read where they are.

// CHECK-LABEL: glow_low.func @dense_block(
// CHECK-NOT:     glow_low.alloc
// CHECK:         %a = glow_low.view %y : memref<2x6xf32> to memref<2x2xf32, strided<[6, 1]>>
// CHECK-NEXT:    glow_low.relu @out %a, @in %x
// CHECK-NEXT:    %b = glow_low.view %y : memref<2x6xf32> to memref<2x2xf32, strided<[6, 1], offset: 2>>
// CHECK-NEXT:    glow_low.softmax @out %b, @in %a {axis = 1}
// CHECK-NEXT:    %[[AB:.*]] = glow_low.view %y : memref<2x6xf32> to memref<2x2x2xf32, strided<[6, 2, 1]>>
// CHECK-NEXT:    %c = glow_low.view %y : memref<2x6xf32> to memref<2x2xf32, strided<[6, 1], offset: 4>>
// CHECK-NEXT:    glow_low.reduce_sum @out %c, @in %[[AB]]
// CHECK-NEXT:  }
glow_low.func @dense_block(@in %x: memref<2x2xf32>, @out %y: memref<2x6xf32>) {
  %a = glow_low.alloc : memref<2x2xf32>
  glow_low.relu @out %a, @in %x
  %b = glow_low.alloc : memref<2x2xf32>
  glow_low.softmax @out %b, @in %a {axis = 1}
  %ab = glow_low.alloc : memref<2x4xf32>
  %0 = glow_low.view %ab : memref<2x4xf32> to memref<2x2xf32, strided<[4, 1]>>
  glow_low.copy @out %0, @in %a
  %1 = glow_low.view %ab : memref<2x4xf32> to memref<2x2xf32, strided<[4, 1], offset: 2>>
  glow_low.copy @out %1, @in %b
  %c = glow_low.alloc : memref<2x2xf32>
  %2 = glow_low.view %ab : memref<2x4xf32> to memref<2x2x2xf32>
  glow_low.reduce_sum @out %c, @in %2 {axes = [1], keepdims = false}
  %3 = glow_low.view %y : memref<2x6xf32> to memref<2x4xf32, strided<[6, 1]>>
  glow_low.copy @out %3, @in %ab
  %4 = glow_low.view %y : memref<2x6xf32> to memref<2x2xf32, strided<[6, 1], offset: 4>>
  glow_low.copy @out %4, @in %c
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
  glow_low.dealloc @out %ab
  glow_low.dealloc @out %c
}

// -----

// The interior of a pad is written in place, and read there by others too; its life grows to all of theirs.

// CHECK-LABEL: glow_low.func @pad(
// CHECK:         %p = glow_low.alloc : memref<4x4xf32>
// CHECK-NEXT:    %[[A:.*]] = glow_low.view %p : memref<4x4xf32> to memref<2x2xf32, strided<[4, 1], offset: 5>>
// CHECK-NEXT:    glow_low.relu @out %[[A]], @in %x
// CHECK:         glow_low.fill
// CHECK-NEXT:    glow_low.softmax @out %z, @in %p
// CHECK-NEXT:    glow_low.add @out %y, @in %[[A]], @in %x
// CHECK-NEXT:    glow_low.dealloc @out %p
// CHECK-NEXT:  }
glow_low.func @pad(@in %x: memref<2x2xf32>, @out %y: memref<2x2xf32>, @out %z: memref<4x4xf32>) {
  %a = glow_low.alloc : memref<2x2xf32>
  glow_low.relu @out %a, @in %x
  %p = glow_low.alloc : memref<4x4xf32>
  %0 = glow_low.view %p : memref<4x4xf32> to memref<2x2xf32, strided<[4, 1], offset: 5>>
  glow_low.copy @out %0, @in %a
  %1 = glow_low.view %p : memref<4x4xf32> to memref<1x4xf32>
  %2 = glow_low.view %p : memref<4x4xf32> to memref<1x4xf32, strided<[4, 1], offset: 12>>
  %3 = glow_low.view %p : memref<4x4xf32> to memref<2x1xf32, strided<[4, 1], offset: 4>>
  %4 = glow_low.view %p : memref<4x4xf32> to memref<2x1xf32, strided<[4, 1], offset: 7>>
  glow_low.fill @out %1, @out %2, @out %3, @out %4 {value = 0.0}
  glow_low.softmax @out %z, @in %p
  glow_low.dealloc @out %p
  glow_low.add @out %y, @in %a, @in %x
  glow_low.dealloc @out %a
}

// -----

// A slice is read where it is; so is its reshape, where strides can say it.

// CHECK-LABEL: glow_low.func @slice(
// CHECK-NOT:     glow_low.alloc
// CHECK:         %[[V:.*]] = glow_low.view %x : memref<4x4xf32> to memref<2x4xf32, strided<[4, 1], offset: 4>>
// CHECK-NEXT:    %[[W:.*]] = glow_low.view %x : memref<4x4xf32> to memref<8xf32, strided<[1], offset: 4>>
// CHECK-NEXT:    glow_low.relu @out %y, @in %[[V]]
// CHECK-NEXT:    glow_low.neg @out %z, @in %[[W]]
// CHECK-NEXT:  }
glow_low.func @slice(@in %x: memref<4x4xf32>, @out %y: memref<2x4xf32>, @out %z: memref<8xf32>) {
  %a = glow_low.alloc : memref<2x4xf32>
  %0 = glow_low.view %x : memref<4x4xf32> to memref<2x4xf32, strided<[4, 1], offset: 4>>
  glow_low.copy @out %a, @in %0
  glow_low.relu @out %y, @in %a
  %1 = glow_low.view %a : memref<2x4xf32> to memref<8xf32>
  glow_low.neg @out %z, @in %1
  glow_low.dealloc @out %a
}

// -----

// Two copies in a row are one.

// CHECK-LABEL: glow_low.func @transpose_and_pad(
// CHECK-NOT:     glow_low.alloc
// CHECK:         %[[T:.*]] = glow_low.view %x : memref<2x3xf32> to memref<3x2xf32, strided<[1, 3]>>
// CHECK-NEXT:    glow_low.copy @out %{{.*}}, @in %[[T]]
// CHECK-NOT:     glow_low.copy
// CHECK:       }
glow_low.func @transpose_and_pad(@in %x: memref<2x3xf32>, @out %y: memref<4x2xf32>) {
  %a = glow_low.alloc : memref<3x2xf32>
  %0 = glow_low.view %x : memref<2x3xf32> to memref<3x2xf32, strided<[1, 3]>>
  glow_low.copy @out %a, @in %0
  %1 = glow_low.view %y : memref<4x2xf32> to memref<3x2xf32, strided<[2, 1], offset: 2>>
  glow_low.copy @out %1, @in %a
  %2 = glow_low.view %y : memref<4x2xf32> to memref<1x2xf32>
  glow_low.fill @out %2 {value = 0.0}
  glow_low.dealloc @out %a
}

// -----

// Transposed elements are not read one by one, a reshape that strides cannot say stays dense, and a convolution is left
// the filter that its kernel needs.

// CHECK-LABEL: glow_low.func @dense(
// CHECK:         glow_low.copy @out %a
// CHECK:         glow_low.relu @out %y, @in %a
// CHECK:         glow_low.copy @out %b
// CHECK:         glow_low.copy @out %f
// CHECK:         glow_low.conv @out %w, @in %x, @in %f
glow_low.func @dense(@in %x: memref<1x4x4x2xf32>, @out %y: memref<2x1x4x4xf32>, @out %z: memref<16xf32>, @in %g: memref<4x1x1x4xf32>, @out %w: memref<1x4x4x4xf32>) {
  %a = glow_low.alloc : memref<2x1x4x4xf32>
  %0 = glow_low.view %x : memref<1x4x4x2xf32> to memref<2x1x4x4xf32, strided<[1, 32, 8, 2]>>
  glow_low.copy @out %a, @in %0
  glow_low.relu @out %y, @in %a
  %b = glow_low.alloc : memref<1x4x2x2xf32>
  %1 = glow_low.view %x : memref<1x4x4x2xf32> to memref<1x4x2x2xf32, strided<[32, 8, 2, 1], offset: 2>>
  glow_low.copy @out %b, @in %1
  %2 = glow_low.view %b : memref<1x4x2x2xf32> to memref<16xf32>
  glow_low.neg @out %z, @in %2
  %f = glow_low.alloc : memref<4x1x1x2xf32>
  %3 = glow_low.view %g : memref<4x1x1x4xf32> to memref<4x1x1x2xf32, strided<[4, 4, 4, 1]>>
  glow_low.copy @out %f, @in %3
  glow_low.conv @out %w, @in %x, @in %f {layout = "channels_last", strides = [1, 1], pads = [0, 0, 0, 0]}
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
  glow_low.dealloc @out %f
}

// -----

// Backwards, the source must not change while the target is read; forwards, the target's place must be free.

// CHECK-LABEL: glow_low.func @in_between(
// CHECK:         glow_low.copy @out %a, @in %s
// CHECK-NEXT:    glow_low.copy @out %s, @in %x
// CHECK-NEXT:    glow_low.relu @out %y, @in %a
// CHECK-NEXT:    glow_low.softmax @out %b, @in %x
// CHECK-NEXT:    glow_low.exp @out %z, @in %x
// CHECK-NEXT:    glow_low.neg @out %t, @in %z
// CHECK-NEXT:    glow_low.copy @out %z, @in %b
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @z : tensor<4xf32> {output}
glow_high.placeholder @t : tensor<4xf32> {output}
glow_low.func @in_between(@x, @s, @y, @z, @t) {
  %x = glow_low.weight @x : memref<4xf32>
  %s = glow_low.weight @s {mutable} : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  %z = glow_low.weight @z {mutable} : memref<4xf32>
  %t = glow_low.weight @t {mutable} : memref<4xf32>
  %a = glow_low.alloc : memref<4xf32>
  %b = glow_low.alloc : memref<4xf32>
  glow_low.copy @out %a, @in %s
  glow_low.copy @out %s, @in %x
  glow_low.relu @out %y, @in %a
  glow_low.softmax @out %b, @in %x
  glow_low.exp @out %z, @in %x
  glow_low.neg @out %t, @in %z
  glow_low.copy @out %z, @in %b
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
}
