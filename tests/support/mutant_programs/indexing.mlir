// Places that are known at run time alone, order, and borders.
glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_high.placeholder @i : tensor<3xi64> {input}
glow_high.placeholder @y : tensor<3x8xf32> {output}
glow_high.placeholder @v : tensor<4x2xf32> {output}
glow_high.placeholder @p : tensor<4x2xi64> {output}
glow_high.func @main(@x, @i, @y, @v, @p) {
  %x = glow_high.get @x : tensor<4x6xf32>
  %i = glow_high.get @i : tensor<3xi64>
  %0 = glow_high.gather %x, %i : tensor<3x6xf32>
  %1 = glow_high.pad %0 {pads = [0, 1, 0, 1], mode = "reflect"} : tensor<3x8xf32>
  %2 = glow_high.cum_sum %1 {axis = 1} : tensor<3x8xf32>
  glow_high.save %2, @y
  %v, %p = glow_high.top_k %x {k = 2} : tensor<4x2xf32>, tensor<4x2xi64>
  glow_high.save %v, @v
  glow_high.save %p, @p
}
