// Broadcasts, joined and cut tensors, and integers.
glow_high.placeholder @a : tensor<3x4xf32> {input}
glow_high.placeholder @b : tensor<4xf32> {input}
glow_high.placeholder @n : tensor<3x4xi32> {input}
glow_high.placeholder @y : tensor<3x8xf32> {output}
glow_high.placeholder @z : tensor<2x3xi32> {output}
glow_high.constant @k : tensor<3x1xi32>
glow_high.func @main(@a, @b, @n, @y, @z) {
  %a = glow_high.get @a : tensor<3x4xf32>
  %b = glow_high.get @b : tensor<4xf32>
  %n = glow_high.get @n : tensor<3x4xi32>
  %k = glow_high.get @k : tensor<3x1xi32>
  %0 = glow_high.mul %a, %b : tensor<3x4xf32>
  %1 = glow_high.tanh %0 : tensor<3x4xf32>
  %2 = glow_high.exp %a : tensor<3x4xf32>
  %3 = glow_high.concat %1, %2 {axis = 1} : tensor<3x8xf32>
  %4 = glow_high.sqrt %3 : tensor<3x8xf32>
  glow_high.save %4, @y
  %5 = glow_high.add %n, %k : tensor<3x4xi32>
  %6 = glow_high.div %5, %k : tensor<3x4xi32>
  %7 = glow_high.slice %6 {starts = [0, 1], ends = [3, 3]} : tensor<3x2xi32>
  %8 = glow_high.transpose %7 {permutation = [1, 0]} : tensor<2x3xi32>
  glow_high.save %8, @z
}
