builtin.module attributes {glow.stage = "allocated"} {
  glow_high.placeholder @x : tensor<2x4xf32> {input} loc("x")
  glow_high.constant @w1 : tensor<8xf32> {value = dense<[-0.0159225017, 0.054084558, 0.0214659125, 0.0355372727, -0.0653828606, -0.0129613634, 0.0783975497, 0.149343118]> : tensor<8xf32>} loc("w1")
  glow_high.placeholder @y : tensor<2x3xf32> {output} loc("y")
  glow_high.constant @w0.panels_8_4x8 : tensor<1x4x8xf32> {weights = "sha256:261759503709827bb753bbbd214d0f74"} loc("w0")
  glow_high.constant @w2.panels_8_8x3 : tensor<1x8x8xf32> {weights = "sha256:236f3bb0fe963ec8fff84b4f5479c15e"} loc("w2")
  glow_low.func @main(@x, @y) attributes {target = #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "x86-64", features = "+sse2", vector_bits = 128, l1_bytes = 32768, l2_bytes = 524288, l3_bytes = 33554432>, activations = 64, activations_bound = 64, constants = 448} {
    %w2 = glow_low.weight @w2.panels_8_8x3 {region = "constants", offset = 0} : memref<1x8x8xf32> loc("second")
    %w0 = glow_low.weight @w0.panels_8_4x8 {region = "constants", offset = 256} : memref<1x4x8xf32> loc(fused["matmul_0", "add_1", "relu_2"])
    %x = glow_low.weight @x {region = "bindings", offset = 0} : memref<2x4xf32> loc("x")
    %add = glow_low.weight @w1 {region = "constants", offset = 384} : memref<8xf32> loc("w1")
    %y = glow_low.weight @y {mutable, region = "bindings", offset = 1} : memref<2x3xf32> loc("y")
    %relu = glow_low.alloc {offset = 0} : memref<2x8xf32> loc("relu_2")
    glow_low.matmul @out %relu, @in %x, @in %w0, @in %add {samples = 2, kernel = "matmul", packing = {right = {form = "panels", shape = [4, 8], panel = 8}}} epilogue {
    ^bb0(%0: f32 loc(unknown)):
      %1 = arith.constant 0.000000e+00 : f32 loc("relu_2")
      %2 = arith.maximumf %0, %1 : f32 loc("relu_2")
      glow_low.yield %2 : f32 loc("relu_2")
    } loc(fused["matmul_0", "add_1", "relu_2"])
    glow_low.matmul @out %y, @in %relu, @in %w2 {samples = 2, kernel = "matmul", packing = {right = {form = "panels", shape = [8, 3], panel = 8}}} loc("second")
    glow_low.dealloc @out %relu loc("relu_2")
  } loc(unknown)
} loc(unknown)
