// Branches, a loop over rows that stacks results, and one inside another that a condition may end.
glow_high.placeholder @x : tensor<3x4xf32> {input}
glow_high.placeholder @flag : tensor<i1> {input}
glow_high.placeholder @y : tensor<3x4xf32> {output}
glow_high.placeholder @z : tensor<4xf32> {output}
glow_high.func @main(@x, @flag, @y, @z) {
  %x = glow_high.get @x : tensor<3x4xf32>
  %flag = glow_high.get @flag : tensor<i1>
  %zero = glow_high.splat {value = 0.0} : tensor<4xf32>
  %last, %sums = glow_high.loop %i = 3 (%a = %zero) over (%row = %x) {
    %0 = glow_high.add %a, %row : tensor<4xf32>
    glow_high.yield %0, %0
  } : tensor<4xf32>, tensor<3x4xf32>
  %chosen = glow_high.if %flag {
    %1 = glow_high.exp %last : tensor<4xf32>
    %2 = glow_high.loop %k = 2 (%b = %1) {
      %3 = glow_high.loop %j = 3 while %flag (%c = %b) {
        %4 = glow_high.cast %j {to = f32} : tensor<f32>
        %5 = glow_high.add %c, %4 : tensor<4xf32>
        %6 = glow_high.not %flag : tensor<i1>
        glow_high.yield %6, %5
      } : tensor<4xf32>
      glow_high.yield %3
    } : tensor<4xf32>
    glow_high.yield %2
  } else {
    %7 = glow_high.relu %last : tensor<4xf32>
    glow_high.yield %7
  } : tensor<4xf32>
  glow_high.save %sums, @y
  glow_high.save %chosen, @z
}
