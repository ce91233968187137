// Convolutions: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main() {
  %x = glow_high.splat {value = true} : tensor<1x8x8x4xi1>
  %w = glow_high.splat {value = true} : tensor<6x3x3x4xi1>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes numbers and quantized elements, not i1}}
  %y = glow_high.conv %x, %w : tensor<1x6x6x6xi1>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i8} : tensor<1x8x8x4xi8>
  %w = glow_high.splat {value = 1 : ui8} : tensor<6x3x3x4xui8>
  // expected-error@+1 {{result has type tensor<1x6x6x6xi8>, but tensor<1x6x6x6xi32> follows from the operands}}
  %y = glow_high.conv %x, %w : tensor<1x6x6x6xi8>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i8} : tensor<1x8x8x4xi8>
  %w = glow_high.splat {value = 1 : i16} : tensor<6x3x3x4xi16>
  // expected-error@+1 {{operands have different element types: i8 and i16}}
  %y = glow_high.conv %x, %w : tensor<1x6x6x6xi32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1 : i8} : tensor<1x8x8x4xi8>
  %w = glow_high.splat {value = 1 : i8} : tensor<6x3x3x4xi8>
  %b = glow_high.splat {value = 1 : i8} : tensor<6xi8>
  // expected-error@+1 {{the bias of a product of i32 cannot be i8}}
  %y = glow_high.conv %x, %w, %b : tensor<1x6x6x6xi32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.000000e+00 : f64} : tensor<6x3x3x4xf64>
  // expected-error@+1 {{operands have different element types: f32 and f64}}
  %y = glow_high.conv %x, %w : tensor<1x6x6x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<6x3x4xf32>
  // expected-error@+1 {{the filter has 1 spatial axes, the input 2}}
  %y = glow_high.conv %x, %w : tensor<1x6x6x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<6x3x3x3xf32>
  // expected-error@+1 {{the filter reads 3 channels a group, the input has 4}}
  %y = glow_high.conv %x, %w : tensor<1x6x6x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<6x3x3x4xf32>
  // expected-error@+1 {{3 groups do not divide channels}}
  %y = glow_high.conv %x, %w {group = 3} : tensor<1x6x6x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<6x3x3x4xf32>
  %b = glow_high.splat {value = 1.0} : tensor<5xf32>
  // expected-error@+1 {{bias must have shape (6,), not (5,)}}
  %y = glow_high.conv %x, %w, %b : tensor<1x6x6x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<6x3x3x4xf32>
  // expected-error@+1 {{strides must have 2 elements}}
  %y = glow_high.conv %x, %w {strides = [2]} : tensor<1x6x6x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<6x3x3x4xf32>
  // expected-error@+1 {{pads must have 4 elements}}
  %y = glow_high.conv %x, %w {pads = [1, 1]} : tensor<1x6x6x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<6x3x3x4xf32>
  // expected-error@+1 {{pads must not be negative}}
  %y = glow_high.conv %x, %w {pads = [-1, 0, 0, 0]} : tensor<1x6x6x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<6x3x3x4xf32>
  // expected-error@+1 {{strides must be positive}}
  %y = glow_high.conv %x, %w {strides = [0, 1]} : tensor<1x6x6x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<6x9x9x4xf32>
  // expected-error@+1 {{the window of 9 exceeds the padded input of 8}}
  %y = glow_high.conv %x, %w : tensor<1x6x6x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<6x3x3x4xf32>
  // expected-error@+1 {{layout must be one of channels_last, channels_first, not 'nchw'}}
  %y = glow_high.conv %x, %w {layout = "nchw"} : tensor<1x6x6x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  %w = glow_high.splat {value = 1.0} : tensor<6x3x3x4xf32>
  // expected-error@+1 {{operand 'input' at position 0 does not verify: takes 3 axes or more, not 2}}
  %y = glow_high.conv %x, %w : tensor<1x6x6x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<5x2x2x6xf32>
  // expected-error@+1 {{the filter reads 5 channels, the input has 4}}
  %y = glow_high.conv_transpose %x, %w : tensor<1x9x9x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<4x2x2x6xf32>
  // expected-error@+1 {{output_padding must have 2 elements}}
  %y = glow_high.conv_transpose %x, %w {output_padding = [1]} : tensor<1x9x9x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<4x2x2x6xf32>
  // expected-error@+1 {{output_padding must not be negative}}
  %y = glow_high.conv_transpose %x, %w {output_padding = [-1, 0]} : tensor<1x9x9x6xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<1x8x8x4xf32>
  %w = glow_high.splat {value = 1.0} : tensor<4x2x2x6xf32>
  // expected-error@+1 {{the output would have the spatial sizes (-1, 9)}}
  %y = glow_high.conv_transpose %x, %w {pads = [5, 0, 5, 0]} : tensor<1x9x9x6xf32>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @main
// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x18x28xf32>) {
  // expected-error @below {{windows of 1 axes do not fit images of 2}}
  %0 = glow_high.col2im %x {image_shape = [6, 8], block_shape = [3]} : tensor<2x3x6x8xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x18x28xf32>) {
  // expected-error @below {{18 rows are no channels of 4 elements each}}
  %0 = glow_high.col2im %x {image_shape = [6, 8], block_shape = [4, 1]} : tensor<2x3x6x8xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x18x28xf32>) {
  // expected-error @below {{28 columns do not fit 32 windows}}
  %0 = glow_high.col2im %x {image_shape = [6, 9], block_shape = [3, 2]} : tensor<2x3x6x8xf32>
}
