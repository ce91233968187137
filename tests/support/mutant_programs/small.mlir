// Two operators, whose machine code is short.
glow_high.placeholder @x : tensor<2x4xf32> {input}
glow_high.placeholder @n : tensor<2xi32> {input}
glow_high.placeholder @y : tensor<2xf32> {output}
glow_high.placeholder @m : tensor<2xi32> {output}
glow_high.func @main(@x, @n, @y, @m) {
  %x = glow_high.get @x : tensor<2x4xf32>
  %0 = glow_high.relu %x : tensor<2x4xf32>
  %1 = glow_high.reduce_max %0 {axes = [1], keepdims = false} : tensor<2xf32>
  glow_high.save %1, @y
  %n = glow_high.get @n : tensor<2xi32>
  %2 = glow_high.div %n, %n : tensor<2xi32>
  glow_high.save %2, @m
}
