// An LSTM that goes on where the last call left it.
glow_high.placeholder @x : tensor<3x1x5xf32> {input}
glow_high.placeholder @h : tensor<1x1x4xf32> {state}
glow_high.placeholder @c : tensor<1x1x4xf32> {state}
glow_high.placeholder @y : tensor<3x1x1x4xf32> {output}
glow_high.constant @w : tensor<1x16x5xf32>
glow_high.constant @r : tensor<1x16x4xf32>
glow_high.constant @b : tensor<1x32xf32>
glow_high.func @main(@x, @h, @c, @y) {
  %x = glow_high.get @x : tensor<3x1x5xf32>
  %h = glow_high.get @h {mutable} : tensor<1x1x4xf32>
  %c = glow_high.get @c {mutable} : tensor<1x1x4xf32>
  %w = glow_high.get @w : tensor<1x16x5xf32>
  %r = glow_high.get @r : tensor<1x16x4xf32>
  %b = glow_high.get @b : tensor<1x32xf32>
  %y, %h1, %c1 = glow_high.lstm %x, %w, %r, %b, none, %h, %c : tensor<3x1x1x4xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>
  glow_high.save %y, @y
  glow_high.save %h1, @h
  glow_high.save %c1, @c
}
