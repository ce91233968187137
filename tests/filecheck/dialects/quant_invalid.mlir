// Quantized element types: what is refused.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: @fine
glow_high.placeholder @fine : tensor<4x!quant.uniform<i8:f32, 0.02:3>> {input}

// -----

// expected-error@+1 {{quantized elements are stored in 8, 16 or 32 bits}}
glow_high.placeholder @x : tensor<4x!quant.uniform<i7:f32, 0.02:3>> {input}

// -----

// expected-error@+1 {{quantized elements express floats, not i32}}
glow_high.placeholder @x : tensor<4x!quant.uniform<i8:i32, 0.02:3>> {input}

// -----

// expected-error@+1 {{the scale 0.0 is no positive number}}
glow_high.placeholder @x : tensor<4x!quant.uniform<i8:f32, 0.0:3>> {input}

// -----

// expected-error@+1 {{the zero point 128 is outside of -128:127}}
glow_high.placeholder @x : tensor<4x!quant.uniform<i8:f32, 0.5:128>> {input}

// -----

// expected-error@+1 {{the storage range -1:127 is no part of 0:255, where ui8 lie}}
glow_high.placeholder @x : tensor<4x!quant.uniform<u8<-1:127>:f32, 0.5>> {input}

// -----

// expected-error@+1 {{'f8' stores no quantized elements: i8, u8, …}}
glow_high.placeholder @x : tensor<4x!quant.uniform<f8:f32, 0.5>> {input}

// -----

// expected-error@+1 {{the axis 1 of quantization is none of the 1 axes of a tensor}}
glow_high.placeholder @x : tensor<2x!quant.uniform<i8:f32:1, {0.5, 0.25}>> {input}

// -----

// expected-error@+1 {{2 scales do not fit an axis of 3 elements}}
glow_high.placeholder @x : tensor<3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> {input}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<3xf32>
  // expected-error@+1 {{there is no conversion to !quant.uniform<i8:f32, 0.5>}}
  %y = glow_high.cast %x {to = !quant.uniform<i8:f32, 0.5>} : tensor<3x!quant.uniform<i8:f32, 0.5>>
}

// -----

glow_high.placeholder @x : tensor<4x4x!quant.uniform<i8:f32, 0.5>> {input}
glow_high.func @main(@x) {
  %x = glow_high.get @x : tensor<4x4x!quant.uniform<i8:f32, 0.5>>
  // expected-error@+1 {{result has type tensor<4x4x!quant.uniform<i32:f32, 0.25>>, but tensor<4x4xi32> follows}}
  %y = glow_high.matmul %x, %x : tensor<4x4x!quant.uniform<i32:f32, 0.25>>
}
