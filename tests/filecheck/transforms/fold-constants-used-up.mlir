// Results that only folded operators read are erased and do not count: a chain folds as a whole, whatever its length.

// RUN: glow-opt %s -p 'fold-constants{expansion=1 limit=64 total=512}' | filecheck %s

// CHECK-NOT:  glow_high.constant @exp
// CHECK:      glow_high.constant @rows : tensor<16x64xf32>
// CHECK:      glow_high.constant @y : tensor<16x64xf32>
// CHECK-NOT:  glow_high.constant
glow_high.constant @rows : tensor<16x64xf32> {value = dense<1.0> : tensor<16x64xf32>}

// CHECK-LABEL: glow_high.func @chain(
// CHECK-NEXT:    %[[ROWS:.*]] = glow_high.get @rows
// CHECK-NEXT:    %[[Y:.*]] = glow_high.get @y
// CHECK-NEXT:    glow_high.return %[[ROWS]], %[[Y]]
glow_high.func @chain() -> (tensor<16x64xf32>, tensor<16x64xf32>) {
  %rows = glow_high.get @rows : tensor<16x64xf32>
  %1 = glow_high.exp %rows : tensor<16x64xf32>
  %2 = glow_high.neg %1 : tensor<16x64xf32>
  %3 = glow_high.exp %2 : tensor<16x64xf32>
  %4 = glow_high.neg %3 : tensor<16x64xf32>
  %5 = glow_high.exp %4 : tensor<16x64xf32>
  %6 = glow_high.neg %5 : tensor<16x64xf32>
  %7 = glow_high.exp %6 : tensor<16x64xf32>
  %8 = glow_high.neg %7 : tensor<16x64xf32>
  %9 = glow_high.exp %8 : tensor<16x64xf32>
  %10 = glow_high.neg %9 : tensor<16x64xf32>
  %11 = glow_high.exp %10 : tensor<16x64xf32>
  %12 = glow_high.neg %11 : tensor<16x64xf32>
  %13 = glow_high.exp %12 : tensor<16x64xf32>
  %14 = glow_high.neg %13 : tensor<16x64xf32>
  %15 = glow_high.exp %14 : tensor<16x64xf32>
  %16 = glow_high.neg %15 : tensor<16x64xf32>
  %17 = glow_high.exp %16 : tensor<16x64xf32>
  %18 = glow_high.neg %17 : tensor<16x64xf32>
  %19 = glow_high.exp %18 : tensor<16x64xf32>
  %20 = glow_high.neg %19 : tensor<16x64xf32>
  %21 = glow_high.exp %20 : tensor<16x64xf32>
  %22 = glow_high.neg %21 : tensor<16x64xf32>
  %23 = glow_high.exp %22 : tensor<16x64xf32>
  %24 = glow_high.neg %23 : tensor<16x64xf32>
  %y = glow_high.neg %24 : tensor<16x64xf32>
  glow_high.return %rows, %y
}
