builtin.module attributes {glow.stage = "imported"} {
  glow_high.placeholder @x : tensor<2x3xf32> {input} loc("x")
  glow_high.placeholder @z : tensor<2x3xf32> {output} loc("z")
  glow_high.func @main(@x, @z) {
    %x = glow_high.get @x : tensor<2x3xf32> loc("x")
    %y = glow_high.relu %x : tensor<2x3xf32> loc("y")
    %z = glow_high.add %y, %y : tensor<2x3xf32> loc("z")
    glow_high.save %z, @z loc("z")
  } loc(unknown)
} loc(unknown)
