// Attention, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

glow_high.placeholder @q : tensor<2x3x5x8xf32> {input}
glow_high.placeholder @k : tensor<2x1x7x8xf32> {input}
glow_high.placeholder @v : tensor<7x4xf32> {input}
glow_high.placeholder @mask : tensor<5x7xf32> {input}

// CHECK-LABEL: glow_high.func @attention(@q, @k, @v, @mask)
glow_high.func @attention(@q, @k, @v, @mask) {
  %q = glow_high.get @q : tensor<2x3x5x8xf32>
  %k = glow_high.get @k : tensor<2x1x7x8xf32>
  %v = glow_high.get @v : tensor<7x4xf32>
  %mask = glow_high.get @mask : tensor<5x7xf32>
  // CHECK:      %attention = glow_high.attention %q, %k, %v : tensor<2x3x5x4xf32>
  %attention = glow_high.attention %q, %k, %v : tensor<2x3x5x4xf32>
  // CHECK-NEXT: %attention_1 = glow_high.attention %q, %k, %v, %mask {scale = 0.125} : tensor<2x3x5x4xf32>
  %attention_1 = glow_high.attention %q, %k, %v, %mask {scale = 0.125} : tensor<2x3x5x4xf32>
  // CHECK-NEXT: %attention_2 = glow_high.attention %q, %k, %v {causal = true, past = 2} : tensor<2x3x5x4xf32>
  %attention_2 = glow_high.attention %q, %k, %v {causal = true, past = 2} : tensor<2x3x5x4xf32>
}
