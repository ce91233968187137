// Mistakes in sums of rows of tables.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong(%t: tensor<9x64xf32>, %c: tensor<9x4xui8>, %n: tensor<9x4xi32>, %i: tensor<14xi64>, %l: tensor<4xi32>, %s: tensor<9xf32>) {
  // expected-error @below {{'ends' is none of lengths, starts, edges}}
  %0 = glow_high.sparse_lengths_sum %t, %i, %l {bounds = "ends"} : tensor<4x64xf32>
}

// -----

glow_high.func @wrong(%t: tensor<9x64xf32>, %c: tensor<9x4xui8>, %n: tensor<9x4xi32>, %i: tensor<14xi64>, %l: tensor<4xi32>, %s: tensor<9xf32>) {
  // expected-error @below {{rows are floats or codes of ui8, not i32}}
  %0 = glow_high.sparse_lengths_sum %n, %i, %l : tensor<4x4xi32>
}

// -----

glow_high.func @wrong(%t: tensor<9x64xf32>, %c: tensor<9x4xui8>, %n: tensor<9x4xi32>, %i: tensor<14xi64>, %l: tensor<4xi32>, %s: tensor<9xf32>) {
  // expected-error @below {{codes, and only these, have scales once}}
  %0 = glow_high.sparse_lengths_sum %c, %i, %l : tensor<4x4xf32>
}

// -----

glow_high.func @wrong(%t: tensor<9x64xf32>, %c: tensor<9x4xui8>, %n: tensor<9x4xi32>, %i: tensor<14xi64>, %l: tensor<4xi32>, %s: tensor<9xf32>) {
  // expected-error @below {{codes, and only these, have scales once}}
  %0 = glow_high.sparse_lengths_sum %t, %i, %l, none, %s, %s : tensor<4x64xf32>
}

// -----

glow_high.func @wrong(%t: tensor<9x64xf32>, %c: tensor<9x4xui8>, %n: tensor<9x4xi32>, %i: tensor<14xi64>, %l: tensor<4xi32>, %s: tensor<9xf32>) {
  // expected-error @below {{codes have scales and offsets}}
  %0 = glow_high.sparse_lengths_sum %c, %i, %l, none, %s : tensor<4x4xf32>
}

// -----

glow_high.func @wrong(%t: tensor<9x64xf32>, %c: tensor<9x4xui8>, %n: tensor<9x4xi32>, %i: tensor<14xi64>, %l: tensor<4xi32>, %s: tensor<9xf32>) {
  // expected-error @below {{a fused row has 8 bytes or more, not 4}}
  %0 = glow_high.sparse_lengths_sum %c, %i, %l {fused = true} : tensor<4x4xf32>
}

// -----

glow_high.func @wrong(%t: tensor<9x64xf32>, %c: tensor<9x4xui8>, %n: tensor<9x4xi32>, %i: tensor<14xi64>, %l: tensor<4xi32>, %s: tensor<9xf32>) {
  // expected-error @below {{each index has one weight}}
  %0 = glow_high.sparse_lengths_sum %t, %i, %l, %s : tensor<4x64xf32>
}
