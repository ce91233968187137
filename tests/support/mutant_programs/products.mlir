// A convolution by Winograd's algorithm, and a product by Strassen's.
glow_high.placeholder @x : tensor<1x8x8x16xf32> {input}
glow_high.placeholder @y : tensor<64x96xf32> {output}
glow_high.constant @filter : tensor<32x3x3x16xf32>
glow_high.constant @bias : tensor<32xf32>
glow_high.constant @matrix : tensor<32x96xf32>
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<1x8x8x16xf32>
  %filter = glow_high.get @filter : tensor<32x3x3x16xf32>
  %bias = glow_high.get @bias : tensor<32xf32>
  %matrix = glow_high.get @matrix : tensor<32x96xf32>
  %0 = glow_high.conv %x, %filter, %bias {pads = [1, 1, 1, 1]} : tensor<1x8x8x32xf32>
  %1 = glow_high.relu %0 : tensor<1x8x8x32xf32>
  %2 = glow_high.reshape %1 {shape = [64, 32]} : tensor<64x32xf32>
  %3 = glow_high.matmul %2, %matrix : tensor<64x96xf32>
  glow_high.save %3, @y
}
