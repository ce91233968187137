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

glow_high.placeholder @x : tensor<?x4x4xf32, #glow.sizes<[batch], batch = 1 to 64>> {input}
glow_high.func @main(@x) {
  %x = glow_high.get @x : tensor<?x4x4xf32, #glow.sizes<[batch], batch = 1 to 64>>
  // expected-error@+1 {{glow_high.det: the size batch is known at run time only (hint: give dimensions numbers instead of bounds)}}
  %0 = glow_high.det %x : tensor<1xf32>
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_low.func @main(@x) {
  // expected-error@+1 {{glow_low.weight: the size '?' that no #glow.sizes tells is known at run time only}}
  %x = glow_low.weight @x : memref<?xf32>
}
