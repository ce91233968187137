// A layer of a transformer.
glow_high.placeholder @x : tensor<1x5x16xf32> {input}
glow_high.placeholder @mask : tensor<5x5xf32> {input}
glow_high.placeholder @y : tensor<1x5x16xf32> {output}
glow_high.constant @queries : tensor<16x16xf32>
glow_high.constant @scale : tensor<16xf32>
glow_high.constant @shift : tensor<16xf32>
glow_high.func @main(@x, @mask, @y) {
  %x = glow_high.get @x : tensor<1x5x16xf32>
  %mask = glow_high.get @mask : tensor<5x5xf32>
  %queries = glow_high.get @queries : tensor<16x16xf32>
  %scale = glow_high.get @scale : tensor<16xf32>
  %shift = glow_high.get @shift : tensor<16xf32>
  %0 = glow_high.matmul %x, %queries : tensor<1x5x16xf32>
  %1 = glow_high.reshape %0 {shape = [1, 5, 2, 8]} : tensor<1x5x2x8xf32>
  %2 = glow_high.transpose %1 {permutation = [0, 2, 1, 3]} : tensor<1x2x5x8xf32>
  %3 = glow_high.attention %2, %2, %2, %mask {scale = 0.25} : tensor<1x2x5x8xf32>
  %4 = glow_high.transpose %3 {permutation = [0, 2, 1, 3]} : tensor<1x5x2x8xf32>
  %5 = glow_high.reshape %4 {shape = [1, 5, 16]} : tensor<1x5x16xf32>
  %6 = glow_high.add %5, %x : tensor<1x5x16xf32>
  %7 = glow_high.layer_normalization %6, %scale, %shift : tensor<1x5x16xf32>
  glow_high.save %7, @y
}
