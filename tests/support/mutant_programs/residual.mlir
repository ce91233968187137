// A block of a residual network and its classifier.
glow_high.placeholder @x : tensor<1x6x6x8xf32> {input}
glow_high.placeholder @y : tensor<1x10xf32> {output}
glow_high.constant @filter : tensor<8x3x3x8xf32>
glow_high.constant @bias : tensor<8xf32>
glow_high.constant @classes : tensor<8x10xf32>
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<1x6x6x8xf32>
  %filter = glow_high.get @filter : tensor<8x3x3x8xf32>
  %bias = glow_high.get @bias : tensor<8xf32>
  %classes = glow_high.get @classes : tensor<8x10xf32>
  %0 = glow_high.conv %x, %filter, %bias {pads = [1, 1, 1, 1]} : tensor<1x6x6x8xf32>
  %1 = glow_high.relu %0 : tensor<1x6x6x8xf32>
  %2 = glow_high.add %1, %x : tensor<1x6x6x8xf32>
  %3 = glow_high.max_pool %2 {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x3x3x8xf32>
  %4 = glow_high.reduce_mean %3 {axes = [1, 2]} : tensor<1x1x1x8xf32>
  %5 = glow_high.reshape %4 {shape = [1, 8]} : tensor<1x8xf32>
  %6 = glow_high.matmul %5, %classes : tensor<1x10xf32>
  %7 = glow_high.softmax %6 : tensor<1x10xf32>
  glow_high.save %7, @y
}
