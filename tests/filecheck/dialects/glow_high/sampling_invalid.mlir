// Mistakes in operators that sample images between their elements.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong(%x: tensor<2x5x6x3xf32>, %grid: tensor<2x7x8x2xf32>) {
  // expected-error @below {{'spline' is none of linear, nearest, cubic}}
  %0 = glow_high.grid_sample %x, %grid {mode = "spline"} : tensor<2x7x8x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x5x6x3xf32>, %grid: tensor<1x7x8x2xf32>) {
  // expected-error @below {{a grid for 1 images does not fit 2}}
  %0 = glow_high.grid_sample %x, %grid : tensor<1x7x8x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x5x6x3xf32>, %grid: tensor<2x7x8x3xf32>) {
  // expected-error @below {{an image of 2 spatial axes needs a grid of rank 4 with 2 numbers in a row, not one of shape (2, 7, 8, 3)}}
  %0 = glow_high.grid_sample %x, %grid : tensor<2x7x8x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x0x6x3xf32>, %grid: tensor<2x7x8x2xf32>) {
  // expected-error @below {{an image without elements cannot be sampled}}
  %0 = glow_high.grid_sample %x, %grid : tensor<2x7x8x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x5x6x3xi32>, %grid: tensor<2x7x8x2xf32>) {
  // expected-error @below {{i32 has no linear between}}
  %0 = glow_high.grid_sample %x, %grid : tensor<2x7x8x3xi32>
}
