// Chains of instructions, each the only reader of the one before, are computed by blocks of lines.

// RUN: glow-opt %s -p 'assign-target{target=avx2 l2_bytes=6000},tile-lines,verify-low,shorten-lifetimes' --split-input-file | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2 l2_bytes=1000000},tile-lines' --split-input-file | filecheck %s --check-prefix=HELD
// RUN: glow-opt %s -p 'assign-target{target=avx2 l2_bytes=6000},tile-lines' --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS
// RUN: glow-opt %s -p 'assign-target{target=avx2 l2_bytes=0 ram_bytes=12232},tile-lines,verify-low' --split-input-file | filecheck %s --check-prefix=LIMIT
// RUN: glow-opt %s -p 'assign-target{target=avx2 l2_bytes=6000 ram_bytes=100000},tile-lines' --split-input-file | filecheck %s --check-prefix=HELD
// RUN: glow-opt %s -p 'assign-target{target=avx2 l2_bytes=6000 threads=2},tile-lines' --split-input-file | filecheck %s --check-prefix=HELD

// A limit of memory is met by the largest blocks for which there is room beside the 7,232 bytes of arguments, whatever
// the cache holds.

// LIMIT-LABEL: glow_low.func @expanded(
// LIMIT:         glow_low.alloc : memref<1x13x6x16xf32>
// LIMIT:         glow_low.conv @out %{{.*}}, @in %{{.*}}, @in %f {image_lines = 20}

// What the cache or the limit holds stays as it is, and so does what several threads compute.

// HELD-NOT: glow_low.loop

// An expansion and a depthwise convolution with a border: the image between them of 8,448 bytes becomes a buffer of 7
// lines. The first block makes a line more; the two lines that the next block needs again move to the front, and the last
// block finds the border below.

// CHECK-LABEL: glow_low.func @expanded(
// CHECK:         %[[LINES:.*]] = glow_low.alloc : memref<1x7x6x16xf32>
// CHECK:         glow_low.fill @out %{{.*}}, @out %{{.*}} {value = 0.0}
// CHECK:         glow_low.fill @out %{{.*}} {value = 0.0}
// CHECK:         %[[X0:.*]] = glow_low.view %x : memref<1x20x4x4xf32> to memref<1x6x4x4xf32, {{.*}}>
// CHECK:         glow_low.conv @out %{{.*}}, @in %[[X0]], @in %f {image_lines = 20}
// CHECK:         %[[Y0:.*]] = glow_low.view %y : memref<1x20x4x16xf32> to memref<1x5x4x16xf32, {{.*}}>
// CHECK:         glow_low.conv @out %[[Y0]], @in %[[LINES]], @in %g {group = 16, image_lines = 20}
// CHECK:         glow_low.copy
// CHECK:         glow_low.loop %[[I:.*]] = 2 {
// CHECK-NEXT:      %[[NEW:.*]] = glow_low.view %[[LINES]] : memref<1x7x6x16xf32> to memref<1x5x4x16xf32, strided<[672, 96, 16, 1], offset: 208>>
// CHECK-NEXT:      %[[X:.*]] = glow_low.window %x[%[[I]] by 80] : memref<1x20x4x4xf32> to memref<1x5x4x4xf32, strided<[320, 16, 4, 1], offset: 96>>
// CHECK-NEXT:      glow_low.conv @out %[[NEW]], @in %[[X]], @in %f {image_lines = 20}
// CHECK-NEXT:      %[[Y:.*]] = glow_low.window %y[%[[I]] by 320] : memref<1x20x4x16xf32> to memref<1x5x4x16xf32, strided<[1280, 64, 16, 1], offset: 320>>
// CHECK-NEXT:      glow_low.conv @out %[[Y]], @in %[[LINES]], @in %g {group = 16, image_lines = 20}
// CHECK-NEXT:      %[[FRONT:.*]] = glow_low.view %[[LINES]] : memref<1x7x6x16xf32> to memref<1x2x6x16xf32, strided<[672, 96, 16, 1]>>
// CHECK-NEXT:      %[[BACK:.*]] = glow_low.view %[[LINES]] : memref<1x7x6x16xf32> to memref<1x2x6x16xf32, strided<[672, 96, 16, 1], offset: 480>>
// CHECK-NEXT:      glow_low.copy @out %[[FRONT]], @in %[[BACK]]
// CHECK-NEXT:    }
// CHECK:         glow_low.fill
// CHECK:         %[[X1:.*]] = glow_low.view %x : memref<1x20x4x4xf32> to memref<1x4x4x4xf32, {{.*}}>
// CHECK:         glow_low.conv @out %{{.*}}, @in %[[X1]], @in %f {image_lines = 20}
// CHECK:         glow_low.conv @out %{{.*}}, @in %[[LINES]], @in %g {group = 16, image_lines = 20}
// CHECK:         glow_low.dealloc @out %[[LINES]]

// LOCATIONS: glow_low.loop
// LOCATIONS: } loc(fused["expand", "filter"])
glow_low.func @expanded(@in %x: memref<1x20x4x4xf32>, @in %f: memref<16x1x1x4xf32>, @in %g: memref<16x3x3x1xf32>, @out %y: memref<1x20x4x16xf32>) {
  %0 = glow_low.alloc : memref<1x22x6x16xf32>
  %1 = glow_low.view %0 : memref<1x22x6x16xf32> to memref<1x20x4x16xf32, strided<[2112, 96, 16, 1], offset: 112>>
  glow_low.conv @out %1, @in %x, @in %f loc("expand")
  %2 = glow_low.view %0 : memref<1x22x6x16xf32> to memref<1x1x6x16xf32, strided<[2112, 96, 16, 1]>>
  %3 = glow_low.view %0 : memref<1x22x6x16xf32> to memref<1x1x6x16xf32, strided<[2112, 96, 16, 1], offset: 2016>>
  %4 = glow_low.view %0 : memref<1x22x6x16xf32> to memref<1x20x1x16xf32, strided<[2112, 96, 16, 1], offset: 96>>
  %5 = glow_low.view %0 : memref<1x22x6x16xf32> to memref<1x20x1x16xf32, strided<[2112, 96, 16, 1], offset: 176>>
  glow_low.fill @out %2, @out %3, @out %4, @out %5 {value = 0.0}
  glow_low.conv @out %y, @in %0, @in %g {group = 16} loc("filter")
  glow_low.dealloc @out %0
}

// -----

// Not where the result has a second reader, nor where something else happens in between.

// CHECK-LABEL: glow_low.func @read_twice(
// CHECK-NOT:     glow_low.loop
glow_low.func @read_twice(@in %x: memref<1x20x6x4xf32>, @in %f: memref<16x1x1x4xf32>, @in %g: memref<4x1x1x16xf32>, @out %y: memref<1x20x6x4xf32>, @out %z: memref<1x20x6x4xf32>) {
  %0 = glow_low.alloc : memref<1x20x6x16xf32>
  glow_low.conv @out %0, @in %x, @in %f
  glow_low.conv @out %y, @in %0, @in %g
  glow_low.conv @out %z, @in %0, @in %g
  glow_low.dealloc @out %0
}

// CHECK-LABEL: glow_low.func @interrupted(
// CHECK-NOT:     glow_low.loop
glow_low.func @interrupted(@in %x: memref<1x20x6x4xf32>, @in %f: memref<16x1x1x4xf32>, @in %g: memref<4x1x1x16xf32>, @out %y: memref<1x20x6x4xf32>, @out %z: memref<1x20x6x4xf32>) {
  %0 = glow_low.alloc : memref<1x20x6x16xf32>
  glow_low.conv @out %0, @in %x, @in %f
  glow_low.relu @out %z, @in %x
  glow_low.conv @out %y, @in %0, @in %g
  glow_low.dealloc @out %0
}

// -----

// Nor filters of 3x3 whose kernel works on tiles of the whole image.

// CHECK-LABEL: glow_low.func @winograd(
// CHECK-NOT:     glow_low.loop
glow_high.constant @g : tensor<32x3x3x32xf32> {value = dense<1.0> : tensor<32x3x3x32xf32>}
glow_low.func @winograd(@in %x: memref<1x20x20x4xf32>, @in %f: memref<32x1x1x4xf32>, @out %y: memref<1x18x18x32xf32>) {
  %g = glow_low.weight @g : memref<32x3x3x32xf32>
  %0 = glow_low.alloc : memref<1x20x20x32xf32>
  glow_low.conv @out %0, @in %x, @in %f
  glow_low.conv @out %y, @in %0, @in %g
  glow_low.dealloc @out %0
}
