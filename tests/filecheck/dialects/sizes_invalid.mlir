// Sizes that are known at run time only: what the dialects refuse.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: @fine
glow_high.placeholder @fine : tensor<4xf32> {input}

// -----

// expected-error@+1 {{the size '?' that no #glow.sizes tells is known at run time only (hint: give dimensions numbers instead of bounds)}}
glow_high.placeholder @x : tensor<?x4xf32> {input}

// -----

// expected-error@+1 {{the size '?' that no #glow.sizes tells is known at run time only}}
glow_high.placeholder @x : tensor<?x?xf32, #glow.sizes<[batch], batch = 1 to 64>> {input}

// -----

// expected-error@+1 {{the symbol batch has no range: batch = 1 to 64}}
glow_high.placeholder @x : tensor<?x4xf32, #glow.sizes<[batch]>> {input}

// -----

// expected-error@+1 {{the symbol batch cannot be in 9 to 1}}
glow_high.placeholder @x : tensor<?x4xf32, #glow.sizes<[batch], batch = 9 to 1>> {input}

// -----

glow_high.placeholder @x : tensor<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>> {input}
glow_high.placeholder @y : tensor<?x4xf32, #glow.sizes<[length], length = 1 to 64>> {input}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>
  %y = glow_high.get @y : tensor<?x4xf32, #glow.sizes<[length], length = 1 to 64>>
  // expected-error@+1 {{do not broadcast}}
  %0 = glow_high.add %x, %y : tensor<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>
}

// -----

glow_high.placeholder @x : tensor<1x9x9x?xf32, #glow.sizes<[depth], depth = 1 to 64>> {input}
glow_high.placeholder @w : tensor<8x3x3x4xf32> {input}
glow_high.func @main(@x, @w) {
  %x = glow_high.get @x : tensor<1x9x9x?xf32, #glow.sizes<[depth], depth = 1 to 64>>
  %w = glow_high.get @w : tensor<8x3x3x4xf32>
  // expected-error@+1 {{glow_high.conv: the size depth is known at run time only (hint: give dimensions numbers instead of bounds)}}
  %0 = glow_high.conv %x, %w : tensor<1x7x7x8xf32>
}

// -----

// expected-error@+1 {{a size is divided by a number above 0}}
glow_high.placeholder @x : tensor<?x4xf32, #glow.sizes<[batch floordiv 0], batch = 1 to 64>> {input}

// -----

// expected-error@+1 {{Expected integer literal}}
glow_high.placeholder @x : tensor<?x4xf32, #glow.sizes<[batch floordiv batch], batch = 1 to 64>> {input}

// -----

// expected-error@+1 {{the symbol height has no range: height = 1 to 64}}
glow_high.placeholder @x : tensor<?x4xf32, #glow.sizes<[(height + 1) floordiv 2], batch = 1 to 64>> {input}

// -----

// expected-error@+1 {{a tensor has sizes from 0 on}}
glow_high.placeholder @x : tensor<?x4xf32, #glow.sizes<[(height - 5) floordiv 2], height = 1 to 64>> {input}

// -----

// A pool whose window exceeds the smallest image.
glow_high.placeholder @x : tensor<1x?x9x4xf32, #glow.sizes<[height], height = 2 to 64>> {input}
glow_high.func @main(@x) {
  %x = glow_high.get @x : tensor<1x?x9x4xf32, #glow.sizes<[height], height = 2 to 64>>
  // expected-error@+1 {{the window of 3 exceeds the padded input of height where that is 2}}
  %0 = glow_high.max_pool %x {kernel_shape = [3, 3], strides = [2, 2]} : tensor<1x?x4x4xf32, #glow.sizes<[(height - 1) floordiv 2], height = 2 to 64>>
}

// -----

// A result whose height is rounded the other way.
glow_high.placeholder @x : tensor<1x?x9x4xf32, #glow.sizes<[height], height = 4 to 64>> {input}
glow_high.func @main(@x) {
  %x = glow_high.get @x : tensor<1x?x9x4xf32, #glow.sizes<[height], height = 4 to 64>>
  // expected-error@+1 {{but tensor<1x?x4x4xf32, #glow.sizes<[(height + 1) floordiv 2 - 1], height = 4 to 64>> follows from the operands}}
  %0 = glow_high.max_pool %x {kernel_shape = [3, 3], strides = [2, 2]} : tensor<1x?x4x4xf32, #glow.sizes<[height floordiv 2 - 1], height = 4 to 64>>
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_low.func @main(@x) {
  // expected-error@+1 {{glow_low.weight: the size '?' that no #glow.sizes tells is known at run time only}}
  %x = glow_low.weight @x : memref<?xf32>
}

// -----

// A dividend of up to 4000 * 9 * 10^15, where the quotient itself is small.
// expected-error@+1 {{the size (height * 9000000000000000) floordiv 9000000000000001 is of numbers that 64 bits have no room for}}
glow_high.placeholder @x : tensor<?xf32, #glow.sizes<[height * 9000000000000000 floordiv 9000000000000001], height = 1 to 4000>> {input}
