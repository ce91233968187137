// Normalization, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @along_an_axis(%x: tensor<2x5x5x6xf32>) {
  %softmax = glow_high.softmax %x : tensor<2x5x5x6xf32>
  %softmax_1 = glow_high.softmax %x {axis = 1} : tensor<2x5x5x6xf32>
  %log_softmax = glow_high.log_softmax %x : tensor<2x5x5x6xf32>
  %log_softmax_1 = glow_high.log_softmax %x {axis = 2} : tensor<2x5x5x6xf32>
  %hardmax = glow_high.hardmax %x : tensor<2x5x5x6xf32>
  %hardmax_1 = glow_high.hardmax %x {axis = 0} : tensor<2x5x5x6xf32>
}

glow_high.func @statistics(%x: tensor<2x5x5x6xf32>, %c: tensor<6xf32>, %d: tensor<5xf32>) {
  %batch_normalization = glow_high.batch_normalization %x, %c, %c, %c, %c : tensor<2x5x5x6xf32>
  %batch_normalization_1 = glow_high.batch_normalization %x, %d, %d, %d, %d {epsilon = 0.001, axis = 1} : tensor<2x5x5x6xf32>
  %instance_normalization = glow_high.instance_normalization %x, %c, %c : tensor<2x5x5x6xf32>
  %instance_normalization_1 = glow_high.instance_normalization %x, %d, %d {axis = 1} : tensor<2x5x5x6xf32>
  %group_normalization = glow_high.group_normalization %x, %c, %c {groups = 3} : tensor<2x5x5x6xf32>
  %group_normalization_1 = glow_high.group_normalization %x, %c, %c {groups = 2, epsilon = 0.01} : tensor<2x5x5x6xf32>
  %layer_normalization = glow_high.layer_normalization %x, %c : tensor<2x5x5x6xf32>
  %layer_normalization_1 = glow_high.layer_normalization %x, %c, %c {axis = -2, epsilon = 1.0e-12} : tensor<2x5x5x6xf32>
  %rms_normalization = glow_high.rms_normalization %x, %c : tensor<2x5x5x6xf32>
  %rms_normalization_1 = glow_high.rms_normalization %x, %c {axis = 2, epsilon = 1.0e-06} : tensor<2x5x5x6xf32>
}

glow_high.func @neighbours(%x: tensor<2x5x5x6xf32>) {
  %lrn = glow_high.lrn %x {size = 5} : tensor<2x5x5x6xf32>
  %lrn_1 = glow_high.lrn %x {size = 3, alpha = 0.0002, beta = 0.5, bias = 2.0, axis = 1} : tensor<2x5x5x6xf32>
}
