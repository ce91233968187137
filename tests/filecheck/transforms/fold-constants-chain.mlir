// Constants that folding has used up do not count towards `total`: a chain needs the memory of one of its values.

// RUN: glow-opt %s -p 'fold-constants{limit=64 total=512}' | filecheck %s

glow_high.constant @a : tensor<32xf32> {value = dense<1.0> : tensor<32xf32>}

// CHECK-LABEL: glow_high.func @chain(
// CHECK-NOT:     glow_high.add
// CHECK:         glow_high.return
glow_high.func @chain() -> tensor<32xf32> {
  %0 = glow_high.get @a : tensor<32xf32>
  %1 = glow_high.add %0, %0 : tensor<32xf32>
  %2 = glow_high.add %1, %1 : tensor<32xf32>
  %3 = glow_high.add %2, %2 : tensor<32xf32>
  %4 = glow_high.add %3, %3 : tensor<32xf32>
  %5 = glow_high.add %4, %4 : tensor<32xf32>
  %6 = glow_high.add %5, %5 : tensor<32xf32>
  %7 = glow_high.add %6, %6 : tensor<32xf32>
  %8 = glow_high.add %7, %7 : tensor<32xf32>
  %9 = glow_high.add %8, %8 : tensor<32xf32>
  %10 = glow_high.add %9, %9 : tensor<32xf32>
  %11 = glow_high.add %10, %10 : tensor<32xf32>
  %12 = glow_high.add %11, %11 : tensor<32xf32>
  %13 = glow_high.add %12, %12 : tensor<32xf32>
  %14 = glow_high.add %13, %13 : tensor<32xf32>
  %15 = glow_high.add %14, %14 : tensor<32xf32>
  %16 = glow_high.add %15, %15 : tensor<32xf32>
  %17 = glow_high.add %16, %16 : tensor<32xf32>
  %18 = glow_high.add %17, %17 : tensor<32xf32>
  %19 = glow_high.add %18, %18 : tensor<32xf32>
  %20 = glow_high.add %19, %19 : tensor<32xf32>
  glow_high.return %20
}
