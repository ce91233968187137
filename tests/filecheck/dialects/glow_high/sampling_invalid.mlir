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

// -----

glow_high.func @wrong(%x: tensor<2x5x6x3xf32>, %rois: tensor<4x4xf32>, %images: tensor<4xi64>) {
  // expected-error @below {{'median' is none of avg, max}}
  %0 = glow_high.roi_align %x, %rois, %images {output_shape = [7, 8], mode = "median"} : tensor<4x7x8x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x5x6x3xf32>, %rois: tensor<4x5xf32>, %images: tensor<4xi64>) {
  // expected-error @below {{a region has two corners, 4 numbers, not 5}}
  %0 = glow_high.roi_align %x, %rois, %images {output_shape = [7, 8]} : tensor<4x7x8x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x5x6x3xf32>, %rois: tensor<4x4xf32>, %images: tensor<3xi64>) {
  // expected-error @below {{4 regions need as many numbers of images}}
  %0 = glow_high.roi_align %x, %rois, %images {output_shape = [7, 8]} : tensor<4x7x8x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x5x6x3xf32>, %rois: tensor<4x4xf32>, %images: tensor<4xi64>) {
  // expected-error @below {{output_shape is rows and columns, not (7,)}}
  %0 = glow_high.roi_align %x, %rois, %images {output_shape = [7]} : tensor<4x7x8x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x5x6x3xf32>, %rois: tensor<4x4xf64>, %images: tensor<4xi64>) {
  // expected-error @below {{regions are f64, the image is f32}}
  %0 = glow_high.roi_align %x, %rois, %images {output_shape = [7, 8]} : tensor<4x7x8x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<1x5x6x4xf32>, %f: tensor<8x3x3x2xf32>, %o: tensor<1x3x4x18xf32>) {
  // expected-error @below {{1 groups of 2 channels do not fit an input of 4}}
  %0 = glow_high.deform_conv %x, %f, %o : tensor<1x3x4x8xf32>
}

// -----

glow_high.func @wrong(%x: tensor<1x5x6x4xf32>, %f: tensor<8x3x3x4xf32>, %o: tensor<1x3x4x9xf32>) {
  // expected-error @below {{offsets and masks must have one of each for every element, as a shape of (1, 3, 4, 18)}}
  %0 = glow_high.deform_conv %x, %f, %o : tensor<1x3x4x8xf32>
}

// -----

glow_high.func @wrong(%x: tensor<1x5x6x4xf32>, %o: tensor<1x3x4x54xf32>) {
  // expected-error @below {{4 channels have no 3 groups of offsets}}
  %0 = glow_high.deform_columns %x, %o {kernel_shape = [3, 3], offset_group = 3} : tensor<1x3x4x9x4xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x5x6x3xf32>, %rois: tensor<4x4xf32>) {
  // expected-error @below {{a region has an image and two corners, 5 numbers, not 4}}
  %0 = glow_high.roi_pool %x, %rois {output_shape = [7, 8]} : tensor<4x7x8x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x5x6x3xf32>, %rois: tensor<4x5xf32>) {
  // expected-error @below {{output_shape is rows and columns, not (7,)}}
  %0 = glow_high.roi_pool %x, %rois {output_shape = [7]} : tensor<4x7x8x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x5x6x3xf32>, %rois: tensor<4x5xf64>) {
  // expected-error @below {{regions are f64, the image is f32}}
  %0 = glow_high.roi_pool %x, %rois {output_shape = [7, 8]} : tensor<4x7x8x3xf32>
}
