// Rows whose number has bounds: a product, a softmax, rows put together, and a loop of as many trips.
glow_high.placeholder @x : tensor<?x4xf32, #glow.sizes<[n], n = 1 to 6>> {input}
glow_high.placeholder @y : tensor<?x8xf32, #glow.sizes<[n + 1], n = 1 to 6>> {output}
glow_high.placeholder @z : tensor<4xf32> {output}
glow_high.constant @w : tensor<4x8xf32>
glow_high.constant @b : tensor<8xf32>
glow_high.func @main(@x, @y, @z) {
  %x = glow_high.get @x : tensor<?x4xf32, #glow.sizes<[n], n = 1 to 6>>
  %w = glow_high.get @w : tensor<4x8xf32>
  %b = glow_high.get @b : tensor<8xf32>
  %0 = glow_high.matmul %x, %w : tensor<?x8xf32, #glow.sizes<[n], n = 1 to 6>>
  %1 = glow_high.add %0, %b : tensor<?x8xf32, #glow.sizes<[n], n = 1 to 6>>
  %2 = glow_high.softmax %1 : tensor<?x8xf32, #glow.sizes<[n], n = 1 to 6>>
  %one = glow_high.splat {value = 1.0} : tensor<1x8xf32>
  %3 = glow_high.concat %2, %one {axis = 0} : tensor<?x8xf32, #glow.sizes<[n + 1], n = 1 to 6>>
  glow_high.save %3, @y
  %zero = glow_high.splat {value = 0.0} : tensor<4xf32>
  %4 = glow_high.loop %i = #glow.sizes<[n], n = 1 to 6> (%a = %zero) over (%row = %x) {
    %5 = glow_high.add %a, %row : tensor<4xf32>
    glow_high.yield %5
  } : tensor<4xf32>
  glow_high.save %4, @z
}
