// Activation functions, printed and parsed back; parameters with their default value are not printed.

// RUN: GLOW_UNCHANGED

glow_high.func @without_parameters(%x: tensor<2x3xf32>, %y: tensor<3xf32>, %i: tensor<2x3xi32>) {
  %relu = glow_high.relu %x : tensor<2x3xf32>
  %relu_1 = glow_high.relu %i : tensor<2x3xi32>
  %sigmoid = glow_high.sigmoid %x : tensor<2x3xf32>
  %tanh = glow_high.tanh %x : tensor<2x3xf32>
  %hard_swish = glow_high.hard_swish %x : tensor<2x3xf32>
  %softplus = glow_high.softplus %x : tensor<2x3xf32>
  %softsign = glow_high.softsign %x : tensor<2x3xf32>
  %mish = glow_high.mish %x : tensor<2x3xf32>
  %prelu = glow_high.prelu %x, %y : tensor<2x3xf32>
}

glow_high.func @defaults(%x: tensor<2x3xf32>) {
  %leaky_relu = glow_high.leaky_relu %x : tensor<2x3xf32>
  %elu = glow_high.elu %x : tensor<2x3xf32>
  %selu = glow_high.selu %x : tensor<2x3xf32>
  %celu = glow_high.celu %x : tensor<2x3xf32>
  %hard_sigmoid = glow_high.hard_sigmoid %x : tensor<2x3xf32>
  %swish = glow_high.swish %x : tensor<2x3xf32>
  %gelu = glow_high.gelu %x : tensor<2x3xf32>
  %thresholded_relu = glow_high.thresholded_relu %x : tensor<2x3xf32>
  %shrink = glow_high.shrink %x : tensor<2x3xf32>
}

glow_high.func @parameters(%x: tensor<2x3xf32>) {
  %leaky_relu = glow_high.leaky_relu %x {alpha = 0.1} : tensor<2x3xf32>
  %elu = glow_high.elu %x {alpha = 0.5} : tensor<2x3xf32>
  %selu = glow_high.selu %x {alpha = 1.5, gamma = 2.0} : tensor<2x3xf32>
  %celu = glow_high.celu %x {alpha = 2.0} : tensor<2x3xf32>
  %hard_sigmoid = glow_high.hard_sigmoid %x {alpha = 0.25, beta = 0.125} : tensor<2x3xf32>
  %swish = glow_high.swish %x {alpha = 1.702} : tensor<2x3xf32>
  %gelu = glow_high.gelu %x {approximate = "tanh"} : tensor<2x3xf32>
  %thresholded_relu = glow_high.thresholded_relu %x {alpha = 0.3} : tensor<2x3xf32>
  %shrink = glow_high.shrink %x {bias = 0.5, lambd = 1.5} : tensor<2x3xf32>
}
