// Mistakes in operators that select elements by indices.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  // expected-error @below {{operand 'indices' at position 1 does not verify: takes i32 or i64, not f32}}
  %0 = glow_high.gather %x, %y : tensor<2x4x3xf32>
}

// -----

glow_high.func @wrong(%i: tensor<2xi64>, %s: tensor<f32>) {
  // expected-error @below {{gather needs an input with at least one axis}}
  %0 = glow_high.gather %s, %i : tensor<2xf32>
}

// -----

glow_high.func @wrong(%i: tensor<2xi64>, %x: tensor<3xf32>) {
  // expected-error @below {{a failure is told in words}}
  %0 = glow_high.gather %x, %i {failure = ""} : tensor<2xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %i: tensor<2xi64>) {
  // expected-error @below {{axis -3 is out of range for rank 2}}
  %0 = glow_high.gather %x, %i {axis = -3} : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%z: tensor<0x3xf32>, %i: tensor<2xi64>) {
  // expected-error @below {{axis 0 has no elements to take}}
  %0 = glow_high.gather %z, %i : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %i: tensor<2xi64>) {
  // expected-error @below {{input and indices must have as many axes, at least one: (2, 3), (2,)}}
  %0 = glow_high.gather_elements %x, %i : tensor<2xf32>
}

// -----

glow_high.func @wrong(%y: tensor<2x4xf32>, %o: tensor<4x2xi64>) {
  // expected-error @below {{indices of shape (4, 2) exceed the input of shape (2, 4) outside axis 1}}
  %0 = glow_high.gather_elements %y, %o {axis = 1} : tensor<4x2xf32>
}

// -----

glow_high.func @wrong(%z: tensor<0x3xf32>, %n: tensor<1x3xi64>) {
  // expected-error @below {{axis 0 has no elements}}
  %0 = glow_high.gather_elements %z, %n : tensor<1x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %n: tensor<1x3xi64>) {
  // expected-error @below {{rows of 3 indices do not fit an input of 2 axes}}
  %0 = glow_high.gather_nd %x, %n : tensor<1xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %e: tensor<0xi64>) {
  // expected-error @below {{rows of 0 indices do not fit an input of 2 axes}}
  %0 = glow_high.gather_nd %x, %e : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %o: tensor<4x2xi64>) {
  // expected-error @below {{batch_dims 2 is out of range}}
  %0 = glow_high.gather_nd %x, %o {batch_dims = 2} : tensor<4xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %o: tensor<4x2xi64>) {
  // expected-error @below {{the batch axes of input and indices differ}}
  %0 = glow_high.gather_nd %x, %o {batch_dims = 1} : tensor<4xf32>
}

// -----

glow_high.func @wrong(%z: tensor<0x3xf32>, %o: tensor<4x2xi64>) {
  // expected-error @below {{an indexed axis has no elements}}
  %0 = glow_high.gather_nd %z, %o : tensor<4xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>, %n: tensor<1x3xi64>) {
  // expected-error @below {{indices and updates must have one shape}}
  %0 = glow_high.scatter_elements %x, %n, %y : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %i: tensor<2xi64>, %q: tensor<2xf32>) {
  // expected-error @below {{input and indices must have as many axes, at least one: (2, 3), (2,)}}
  %0 = glow_high.scatter_elements %x, %i, %q : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%i: tensor<2xi64>, %q: tensor<2xf32>) {
  // expected-error @below {{updates have another element type than the input}}
  %0 = glow_high.scatter_elements %q, %i, %i : tensor<2xf32>
}

// -----

glow_high.func @wrong(%i: tensor<2xi64>, %q: tensor<2xf32>) {
  // expected-error @below {{reduction must be one of none, add, mul, max, min, not 'sum'}}
  %0 = glow_high.scatter_elements %q, %i, %q {reduction = "sum"} : tensor<2xf32>
}

// -----

glow_high.func @wrong(%b: tensor<4xi1>, %o: tensor<4x2xi64>) {
  // expected-error @below {{reduction 'add' takes numbers, not truth values}}
  %0 = glow_high.scatter_nd %b, %o, %b {reduction = "add"} : tensor<4xi1>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %i: tensor<2xi64>, %q: tensor<2xf32>) {
  // expected-error @below {{updates must have shape (), not (2,)}}
  %0 = glow_high.scatter_nd %x, %i, %q : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %q: tensor<2xf32>, %o: tensor<4x2xi64>) {
  // expected-error @below {{updates must have shape (4,), not (2,)}}
  %0 = glow_high.scatter_nd %x, %o, %q : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %i: tensor<2xi64>) {
  // expected-error @below {{lengths must have shape (3,)}}
  %0 = glow_high.reverse_sequence %x, %i : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %i: tensor<2xi64>) {
  // expected-error @below {{batch_axis and time_axis are the same}}
  %0 = glow_high.reverse_sequence %x, %i {batch_axis = 0} : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%i: tensor<2xi64>, %q: tensor<2xf32>) {
  // expected-error @below {{reverse_sequence needs a batch and a time axis, got shape (2,)}}
  %0 = glow_high.reverse_sequence %q, %i : tensor<2xf32>
}
