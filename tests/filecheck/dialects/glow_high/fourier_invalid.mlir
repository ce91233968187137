// Mistakes in Fourier transforms.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong(%x: tensor<2x10x3xf32>) {
  // expected-error @below {{numbers are real, [..., 1], or complex, [..., 2], not of shape (2, 10, 3)}}
  %0 = glow_high.dft %x {axis = 1, length = 10} : tensor<2x10x2xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x10x2xf32>) {
  // expected-error @below {{the last axis has the parts of complex numbers, and is not transformed}}
  %0 = glow_high.dft %x {axis = -1, length = 10} : tensor<2x10x2xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x10x2xf32>) {
  // expected-error @below {{a transform has one element or more, not 0}}
  %0 = glow_high.dft %x {axis = 1, length = 0} : tensor<2x0x2xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x10x2xf32>) {
  // expected-error @below {{only frequencies of real numbers are told by one half of them}}
  %0 = glow_high.dft %x {axis = 1, length = 10, onesided = true} : tensor<2x6x2xf32>
}
