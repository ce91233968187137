// Mistakes in resizing.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{shape must have 2 elements, one for each axis}}
  %0 = glow_high.resize %x {shape = [2]} : tensor<2xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{'best' is none of nearest, linear, cubic}}
  %0 = glow_high.resize %x {shape = [2, 3], mode = "best"} : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{'pixel' is none of half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, tf_crop_and_resize}}
  %0 = glow_high.resize %x {shape = [2, 3], coordinates = "pixel"} : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{'up' is none of round_prefer_floor, round_prefer_ceil, floor, ceil}}
  %0 = glow_high.resize %x {shape = [2, 3], rounding = "up"} : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{scales must have 2 elements, one for each axis}}
  %0 = glow_high.resize %x {shape = [2, 3], scales = [1.0]} : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{scales must be positive}}
  %0 = glow_high.resize %x {shape = [2, 3], scales = [1.0, -1.0]} : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{roi must have 4 elements}}
  %0 = glow_high.resize %x {shape = [2, 3], roi = [1.0, -1.0]} : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%z: tensor<0x3xf32>) {
  // expected-error @below {{an input without elements cannot be resized}}
  %0 = glow_high.resize %z {shape = [2, 3]} : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%b: tensor<4xi1>) {
  // expected-error @below {{truth values have no linear between}}
  %0 = glow_high.resize %b {shape = [8], mode = "linear"} : tensor<8xi1>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{antialias needs mode linear or cubic}}
  %0 = glow_high.resize %x {shape = [2, 3], antialias = true} : tensor<2x3xf32>
}
