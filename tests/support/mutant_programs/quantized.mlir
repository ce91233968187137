// A convolution, a product and a sum of codes, with scales in types and as operands, and a table.
glow_high.placeholder @x : tensor<1x5x5x4xf32> {input}
glow_high.placeholder @s : tensor<f32> {input}
glow_high.placeholder @y : tensor<1x3xf32> {output}
glow_high.placeholder @i : tensor<1x4xi8> {output}
glow_high.constant @w : tensor<6x3x3x4xi8>
glow_high.constant @b : tensor<6xi32>
glow_high.constant @m : tensor<6xf32>
glow_high.constant @o : tensor<6xf32>
glow_high.constant @t : tensor<256xui8>
glow_high.constant @v : tensor<6x3xi8>
glow_high.constant @e : tensor<3xf32>
glow_high.func @main(@x, @s, @y, @i) {
  %x = glow_high.get @x : tensor<1x5x5x4xf32>
  %s = glow_high.get @s : tensor<f32>
  %w = glow_high.get @w : tensor<6x3x3x4xi8>
  %b = glow_high.get @b : tensor<6xi32>
  %m = glow_high.get @m : tensor<6xf32>
  %o = glow_high.get @o : tensor<6xf32>
  %t = glow_high.get @t : tensor<256xui8>
  %v = glow_high.get @v : tensor<6x3xi8>
  %e = glow_high.get @e : tensor<3xf32>
  %q = glow_high.quantize %x {to = !quant.uniform<u8:f32, 0.02:128>} : tensor<1x5x5x4x!quant.uniform<u8:f32, 0.02:128>>
  %sums = glow_high.conv %q, %w, %b {strides = [2, 2]} : tensor<1x2x2x6xi32>
  %codes = glow_high.rescale %sums, %m, %o {to = !quant.uniform<u8:f32, 0.05:100>} : tensor<1x2x2x6x!quant.uniform<u8:f32, 0.05:100>>
  %plain = glow_high.storage_cast %codes {to = ui8} : tensor<1x2x2x6xui8>
  %curve = glow_high.lookup %plain, %t : tensor<1x2x2x6xui8>
  %largest = glow_high.max_pool %curve {kernel_shape = [2, 2]} : tensor<1x1x1x6xui8>
  %row = glow_high.reshape %largest {shape = [1, 6]} : tensor<1x6xui8>
  %again = glow_high.storage_cast %row {to = !quant.uniform<u8:f32, 0.05:100>} : tensor<1x6x!quant.uniform<u8:f32, 0.05:100>>
  %product = glow_high.matmul %again, %v : tensor<1x3xi32>
  %y = glow_high.dequantize %product, %e : tensor<1x3xf32>
  glow_high.save %y, @y
  %first = glow_high.slice %x {starts = [0, 0, 0, 0], ends = [1, 1, 1, 4]} : tensor<1x1x1x4xf32>
  %line = glow_high.reshape %first {shape = [1, 4]} : tensor<1x4xf32>
  %i = glow_high.quantize %line, %s {to = i8} : tensor<1x4xi8>
  glow_high.save %i, @i
}
