// Loops, with windows that move from trip to trip, printed and parsed back.

// RUN: glow-opt %s -p verify-low | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

glow_high.placeholder @x : tensor<8x4xf32> {input}
glow_high.placeholder @s : tensor<8x4xf32> {state}

// CHECK-LABEL: glow_low.func @lines(
// CHECK:         glow_low.loop %[[I:.*]] = 4 {
// CHECK-NEXT:      %[[A:.*]] = glow_low.window %x[%[[I]] by 8] : memref<8x4xf32> to memref<2x4xf32>
// CHECK-NEXT:      %[[B:.*]] = glow_low.window %y[%[[I]] by 8] : memref<8x4xf32> to memref<2x4xf32>
// CHECK-NEXT:      glow_low.relu @out %[[B]], @in %[[A]]
// CHECK-NEXT:    }
glow_low.func @lines(@in %x: memref<8x4xf32>, @out %y: memref<8x4xf32>) {
  glow_low.loop %i = 4 {
    %a = glow_low.window %x[%i by 8] : memref<8x4xf32> to memref<2x4xf32>
    %b = glow_low.window %y[%i by 8] : memref<8x4xf32> to memref<2x4xf32>
    glow_low.relu @out %b, @in %a
  }
}

// A window may move with several loops, and begin anywhere.

// CHECK-LABEL: glow_low.func @pairs(@x, @s)
// CHECK:         glow_low.loop %[[I:.*]] = 4 {
// CHECK-NEXT:      glow_low.loop %[[J:.*]] = 2 {
// CHECK-NEXT:        %{{.*}} = glow_low.window %x[%[[I]] by 8, %[[J]] by 2] : memref<8x4xf32> to memref<2xf32, strided<[4], offset: 1>>
glow_low.func @pairs(@x, @s) {
  %x = glow_low.weight @x : memref<8x4xf32>
  %s = glow_low.weight @s {mutable} : memref<8x4xf32>
  glow_low.loop %i = 4 {
    glow_low.loop %j = 2 {
      %a = glow_low.window %x[%i by 8, %j by 2] : memref<8x4xf32> to memref<2xf32, strided<[4], offset: 1>>
      %b = glow_low.window %s[%i by 8, %j by 2] : memref<8x4xf32> to memref<2xf32, strided<[4]>>
      glow_low.relu @out %b, @in %a
    }
  }
}

// A step below 0 leads backwards, from the last rows to the first.

// CHECK-LABEL: glow_low.func @backwards(
// CHECK:         %{{.*}} = glow_low.window %x[%{{.*}} by -8] : memref<8x4xf32> to memref<2x4xf32, strided<[4, 1], offset: 24>>
glow_low.func @backwards(@in %x: memref<8x4xf32>, @out %y: memref<8x4xf32>) {
  glow_low.loop %i = 4 {
    %a = glow_low.window %x[%i by -8] : memref<8x4xf32> to memref<2x4xf32, strided<[4, 1], offset: 24>>
    %b = glow_low.window %y[%i by 8] : memref<8x4xf32> to memref<2x4xf32>
    glow_low.relu @out %b, @in %a
  }
}

// CHECK-LABEL: glow_low.func @sized(
glow_low.func @sized(@in %x: memref<?x4xf32, #glow.sizes<[n], n = 0 to 6>>, @out %y: memref<?x4xf32, #glow.sizes<[n], n = 0 to 6>>) {
  // CHECK-NEXT: glow_low.loop %{{i|0}} = #glow.sizes<[n], n = 0 to 6> {
  glow_low.loop %i = #glow.sizes<[n], n = 0 to 6> {
    // CHECK-NEXT: %a = glow_low.window %x[%{{i|0}} by 4] : memref<?x4xf32, #glow.sizes<[n], n = 0 to 6>> to memref<4xf32>
    %a = glow_low.window %x[%i by 4] : memref<?x4xf32, #glow.sizes<[n], n = 0 to 6>> to memref<4xf32>
    %b = glow_low.window %y[%i by 4] : memref<?x4xf32, #glow.sizes<[n], n = 0 to 6>> to memref<4xf32>
    glow_low.relu @out %b, @in %a
  }
}
