// Convolutions, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @conv(%image: tensor<1x8x8x4xf32>, %filter: tensor<6x3x3x4xf32>, %depthwise: tensor<4x3x3x1xf32>, %bias: tensor<6xf32>, %first: tensor<1x4x8x8xf32>, %filter_first: tensor<6x4x3x3xf32>, %wave: tensor<1x9x4xf32>, %filter_1d: tensor<6x3x4xf32>) {
  %conv = glow_high.conv %image, %filter : tensor<1x6x6x6xf32>
  %conv_1 = glow_high.conv %image, %filter, %bias {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 2]} : tensor<1x4x3x6xf32>
  %conv_2 = glow_high.conv %image, %depthwise {group = 4} : tensor<1x6x6x4xf32>
  %conv_3 = glow_high.conv %first, %filter_first, %bias {layout = "channels_first"} : tensor<1x6x6x6xf32>
  %conv_4 = glow_high.conv %wave, %filter_1d {pads = [1, 1]} : tensor<1x9x6xf32>
}

glow_high.func @conv_transpose(%image: tensor<1x8x8x4xf32>, %up: tensor<4x2x2x6xf32>, %up_grouped: tensor<4x2x2x3xf32>, %bias: tensor<6xf32>) {
  %conv_transpose = glow_high.conv_transpose %image, %up : tensor<1x9x9x6xf32>
  %conv_transpose_1 = glow_high.conv_transpose %image, %up, %bias {strides = [2, 2], pads = [1, 0, 0, 1], dilations = [2, 1], output_padding = [1, 1]} : tensor<1x17x16x6xf32>
  %conv_transpose_2 = glow_high.conv_transpose %image, %up_grouped, %bias {group = 2} : tensor<1x9x9x6xf32>
}

glow_high.func @windows_to_images(%x: tensor<2x18x28xf32>) {
  %col2im = glow_high.col2im %x {image_shape = [6, 8], block_shape = [3, 2]} : tensor<2x3x6x8xf32>
  %col2im_1 = glow_high.col2im %x {image_shape = [6, 20], block_shape = [3, 2], strides = [1, 3], pads = [0, 0, 0, 1], dilations = [1, 2]} : tensor<2x3x6x20xf32>
}
