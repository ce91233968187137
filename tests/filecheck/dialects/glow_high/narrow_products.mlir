// Products of 16-bit floats: what they are rounded to, or their sums in f32, in both dialects.

// RUN: GLOW_ROUNDTRIP
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s
// RUN: glow-opt %s -p glow-high-to-glow-low | filecheck %s --check-prefix=LOW
// RUN: glow-opt %s -p 'assign-target,lower,verify-lowered' | filecheck %s --check-prefix=CPU

// Machine code gives sums, and rounds them behind.

// CPU: %[[S:.*]] = glow_high.matmul %a, %b {to = f32} : tensor<2x4xf32>
// CPU-NEXT: glow_high.cast %[[S]] {to = bf16} : tensor<2x4xbf16>

// CHECK-LABEL: glow_high.func @main(
glow_high.func @main(%a: tensor<2x3xbf16>, %b: tensor<3x4xbf16>, %image: tensor<1x5x5x4xf16>, %filter: tensor<6x3x3x4xf16>,
                     %bias: tensor<6xf32>, %last: tensor<4xf32>)
    -> (tensor<2x4xbf16>, tensor<1x3x3x6xf32>, tensor<2x4xf32>) {
  // CHECK: glow_high.matmul %a, %b : tensor<2x4xbf16>
  // LOW: glow_low.matmul @out %{{.*}}, @in %a, @in %b
  %0 = glow_high.matmul %a, %b : tensor<2x4xbf16>
  // CHECK: glow_high.conv %image, %filter, %bias {to = f32} : tensor<1x3x3x6xf32>
  // LOW: glow_low.conv @out %{{.*}}, @in %image, @in %filter, @in %bias {to = f32
  %1 = glow_high.conv %image, %filter, %bias {to = f32} : tensor<1x3x3x6xf32>
  // CHECK: glow_high.fully_connected %a, %b, %last {to = f32} : tensor<2x4xf32>
  // LOW: glow_low.fully_connected @out %{{.*}}, @in %a, @in %b, @in %last {to = f32
  %2 = glow_high.fully_connected %a, %b, %last {to = f32} : tensor<2x4xf32>
  glow_high.return %0, %1, %2
}
