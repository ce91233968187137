// Products of narrow integers: their sums are i32, in both dialects.

// RUN: GLOW_UNCHANGED
// RUN: glow-opt %s -p glow-high-to-glow-low | filecheck %s --check-prefix=LOW
// RUN: glow-opt %s -p 'assign-target,lower,verify-lowered' | filecheck %s --check-prefix=CPU

glow_high.placeholder @a : tensor<2x3xi8> {input}
glow_high.placeholder @b : tensor<3x4xui8> {input}
glow_high.placeholder @image : tensor<1x5x5x4xui8> {input}
glow_high.placeholder @filter : tensor<6x3x3x4xi8> {input}
glow_high.placeholder @bias : tensor<6xi32> {input}
glow_high.placeholder @product : tensor<2x4xi32> {output}
glow_high.placeholder @result : tensor<1x3x3x6xi32> {output}

// CPU: glow_high.matmul
// CPU: glow_high.conv

glow_high.func @main(@a, @b, @image, @filter, @bias, @product, @result) {
  %a = glow_high.get @a : tensor<2x3xi8>
  %b = glow_high.get @b : tensor<3x4xui8>
  // LOW: glow_low.matmul @out %{{.*}}, @in %a, @in %b
  %0 = glow_high.matmul %a, %b : tensor<2x4xi32>
  glow_high.save %0, @product
  %image = glow_high.get @image : tensor<1x5x5x4xui8>
  %filter = glow_high.get @filter : tensor<6x3x3x4xi8>
  %bias = glow_high.get @bias : tensor<6xi32>
  // LOW: glow_low.conv @out %{{.*}}, @in %image, @in %filter, @in %bias
  %1 = glow_high.conv %image, %filter, %bias : tensor<1x3x3x6xi32>
  glow_high.save %1, @result
}
