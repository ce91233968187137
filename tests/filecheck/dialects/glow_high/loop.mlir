// Loops over the rows of tensors, printed and parsed back.

// RUN: GLOW_UNCHANGED
// RUN: glow-opt %s -p glow-high-to-glow-low,verify-low | filecheck %s --check-prefix=LOW

// Each trip adds a row to what it carries, and gives the sum to a result.


// A window moves over each tensor, and one over each result.

// LOW-LABEL: glow_low.func @sums(
// LOW:         %[[CARRIED:.*]] = glow_low.alloc : memref<2xf32>
// LOW-NEXT:    glow_low.copy @out %[[CARRIED]], @in %zero
// LOW-NEXT:    %[[STACK:.*]] = glow_low.alloc : memref<3x2xf32>
// LOW-NEXT:    glow_low.loop %[[I:.*]] = 3 {
// LOW-NEXT:      %[[ROW:.*]] = glow_low.window %x[%[[I]] by 2] : memref<3x2xf32> to memref<2xf32>
// LOW-NEXT:      %[[PLACE:.*]] = glow_low.window %[[STACK]][%[[I]] by 2] : memref<3x2xf32> to memref<2xf32>
// LOW-NEXT:      %[[SUM:.*]] = glow_low.alloc : memref<2xf32>
// LOW-NEXT:      glow_low.add @out %[[SUM]], @in %[[CARRIED]], @in %[[ROW]]
// LOW-NEXT:      glow_low.copy @out %[[CARRIED]], @in %[[SUM]]
// LOW-NEXT:      glow_low.copy @out %[[PLACE]], @in %[[SUM]]
glow_high.func @sums(%x: tensor<3x2xf32>, %zero: tensor<2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>) {
  %last, %sums = glow_high.loop %i = 3 (%a = %zero) over (%row = %x) {
    %0 = glow_high.add %a, %row : tensor<2xf32>
    glow_high.yield %0, %0
  } : tensor<2xf32>, tensor<3x2xf32>
  glow_high.return %last, %sums
}

// Rows of several tensors, from either end; what is seen through a window as another shape is another window.

// LOW-LABEL:   glow_low.func @both_ways(
// LOW:           glow_low.loop %[[I:.*]] = 3 {
// LOW-NEXT:        %{{.*}} = glow_low.window %x[%[[I]] by -2] : memref<3x2xf32> to memref<2xf32, strided<[1], offset: 4>>
// LOW-NEXT:        %[[N:.*]] = glow_low.window %n[%[[I]] by 1] : memref<3xi64> to memref<i64>
// LOW-NEXT:        %[[PLACE:.*]] = glow_low.window %{{.*}}[%[[I]] by -2] : memref<3x2x1xf32> to memref<2x1xf32, strided<[1, 1], offset: 4>>
// LOW-NEXT:        %{{.*}} = glow_low.window
// LOW-NEXT:        %[[COLUMN:.*]] = glow_low.window %x[%[[I]] by -2] : memref<3x2xf32> to memref<2x1xf32, strided<[1, 1], offset: 4>>
// LOW-NEXT:        glow_low.copy @out %[[PLACE]], @in %[[COLUMN]]
glow_high.func @both_ways(%x: tensor<3x2xf32>, %n: tensor<3xi64>) -> (tensor<3x2x1xf32>, tensor<3xi64>) {
  %columns, %numbers = glow_high.loop %i = 3 over (%row = %x reversed, %number = %n) {
    %0 = glow_high.reshape %row {shape = [2, 1]} : tensor<2x1xf32>
    glow_high.yield %0, %number
  } : tensor<3x2x1xf32> reversed, tensor<3xi64>
  glow_high.return %columns, %numbers
}

// What goes over tensors may end early, and then stacks nothing.

glow_high.func @early(%x: tensor<3x2xf32>, %go: tensor<i1>) -> tensor<2xf32> {
  %zero = glow_high.splat {value = 0.0} : tensor<2xf32>
  %last = glow_high.loop %i = 3 while %go (%a = %zero) over (%row = %x) {
    %0 = glow_high.not %go : tensor<i1>
    glow_high.yield %0, %row
  } : tensor<2xf32>
  glow_high.return %last
}

// Trips are a size that is known at run time only; a condition ends a loop that stacks results.

glow_high.func @sized(%x: tensor<?x4xf32, #glow.sizes<[n], n = 0 to 6>>, %z: tensor<4xf32>, %go: tensor<i1>) {
  %last, %sums = glow_high.loop %k = #glow.sizes<[n], n = 0 to 6> (%a = %z) over (%row = %x) {
    %0 = glow_high.add %a, %row : tensor<4xf32>
    glow_high.yield %0, %0
  } : tensor<4xf32>, tensor<?x4xf32, #glow.sizes<[n], n = 0 to 6>>
  %some = glow_high.loop %i = 5 while %go {
    glow_high.yield %go, %z
  } : tensor<5x4xf32>
}
