// An inverted residual, which is computed by lines.
glow_high.placeholder @x : tensor<1x24x6x4xf32> {input}
glow_high.placeholder @y : tensor<1x24x6x4xf32> {output}
glow_high.constant @expand : tensor<8x1x1x4xf32>
glow_high.constant @depthwise : tensor<8x3x3x1xf32>
glow_high.constant @project : tensor<4x1x1x8xf32>
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<1x24x6x4xf32>
  %expand = glow_high.get @expand : tensor<8x1x1x4xf32>
  %depthwise = glow_high.get @depthwise : tensor<8x3x3x1xf32>
  %project = glow_high.get @project : tensor<4x1x1x8xf32>
  %0 = glow_high.conv %x, %expand : tensor<1x24x6x8xf32>
  %1 = glow_high.relu %0 : tensor<1x24x6x8xf32>
  %2 = glow_high.conv %1, %depthwise {pads = [1, 1, 1, 1], group = 8} : tensor<1x24x6x8xf32>
  %3 = glow_high.relu %2 : tensor<1x24x6x8xf32>
  %4 = glow_high.conv %3, %project : tensor<1x24x6x4xf32>
  %5 = glow_high.add %4, %x : tensor<1x24x6x4xf32>
  glow_high.save %5, @y
}
