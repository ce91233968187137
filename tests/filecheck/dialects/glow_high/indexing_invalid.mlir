// Mistakes in operators that select elements by indices.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @y : tensor<2x4xf32> {input}
glow_high.func @wrong(@x, @y) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %y = glow_high.get @y : tensor<2x4xf32>
  // expected-error @below {{operand 'indices' at position 1 does not verify: takes i32 or i64, not f32}}
  %0 = glow_high.gather %x, %y : tensor<2x4x3xf32>
}

// -----

glow_high.placeholder @i : tensor<2xi64> {input}
glow_high.placeholder @s : tensor<f32> {input}
glow_high.func @wrong(@i, @s) {
  %i = glow_high.get @i : tensor<2xi64>
  %s = glow_high.get @s : tensor<f32>
  // expected-error @below {{gather needs an input with at least one axis}}
  %0 = glow_high.gather %s, %i : tensor<2xf32>
}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @i : tensor<2xi64> {input}
glow_high.func @wrong(@x, @i) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %i = glow_high.get @i : tensor<2xi64>
  // expected-error @below {{axis -3 is out of range for rank 2}}
  %0 = glow_high.gather %x, %i {axis = -3} : tensor<2x3xf32>
}

// -----

glow_high.placeholder @z : tensor<0x3xf32> {input}
glow_high.placeholder @i : tensor<2xi64> {input}
glow_high.func @wrong(@z, @i) {
  %z = glow_high.get @z : tensor<0x3xf32>
  %i = glow_high.get @i : tensor<2xi64>
  // expected-error @below {{axis 0 has no elements to take}}
  %0 = glow_high.gather %z, %i : tensor<2x3xf32>
}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @i : tensor<2xi64> {input}
glow_high.func @wrong(@x, @i) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %i = glow_high.get @i : tensor<2xi64>
  // expected-error @below {{input and indices must have as many axes, at least one: (2, 3), (2,)}}
  %0 = glow_high.gather_elements %x, %i : tensor<2xf32>
}

// -----

glow_high.placeholder @y : tensor<2x4xf32> {input}
glow_high.placeholder @o : tensor<4x2xi64> {input}
glow_high.func @wrong(@y, @o) {
  %y = glow_high.get @y : tensor<2x4xf32>
  %o = glow_high.get @o : tensor<4x2xi64>
  // expected-error @below {{indices of shape (4, 2) exceed the input of shape (2, 4) outside axis 1}}
  %0 = glow_high.gather_elements %y, %o {axis = 1} : tensor<4x2xf32>
}

// -----

glow_high.placeholder @z : tensor<0x3xf32> {input}
glow_high.placeholder @n : tensor<1x3xi64> {input}
glow_high.func @wrong(@z, @n) {
  %z = glow_high.get @z : tensor<0x3xf32>
  %n = glow_high.get @n : tensor<1x3xi64>
  // expected-error @below {{axis 0 has no elements}}
  %0 = glow_high.gather_elements %z, %n : tensor<1x3xf32>
}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @n : tensor<1x3xi64> {input}
glow_high.func @wrong(@x, @n) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %n = glow_high.get @n : tensor<1x3xi64>
  // expected-error @below {{rows of 3 indices do not fit an input of 2 axes}}
  %0 = glow_high.gather_nd %x, %n : tensor<1xf32>
}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @e : tensor<0xi64> {input}
glow_high.func @wrong(@x, @e) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %e = glow_high.get @e : tensor<0xi64>
  // expected-error @below {{rows of 0 indices do not fit an input of 2 axes}}
  %0 = glow_high.gather_nd %x, %e : tensor<2x3xf32>
}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @o : tensor<4x2xi64> {input}
glow_high.func @wrong(@x, @o) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %o = glow_high.get @o : tensor<4x2xi64>
  // expected-error @below {{batch_dims 2 is out of range}}
  %0 = glow_high.gather_nd %x, %o {batch_dims = 2} : tensor<4xf32>
}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @o : tensor<4x2xi64> {input}
glow_high.func @wrong(@x, @o) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %o = glow_high.get @o : tensor<4x2xi64>
  // expected-error @below {{the batch axes of input and indices differ}}
  %0 = glow_high.gather_nd %x, %o {batch_dims = 1} : tensor<4xf32>
}

// -----

glow_high.placeholder @z : tensor<0x3xf32> {input}
glow_high.placeholder @o : tensor<4x2xi64> {input}
glow_high.func @wrong(@z, @o) {
  %z = glow_high.get @z : tensor<0x3xf32>
  %o = glow_high.get @o : tensor<4x2xi64>
  // expected-error @below {{an indexed axis has no elements}}
  %0 = glow_high.gather_nd %z, %o : tensor<4xf32>
}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @y : tensor<2x4xf32> {input}
glow_high.placeholder @n : tensor<1x3xi64> {input}
glow_high.func @wrong(@x, @y, @n) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %y = glow_high.get @y : tensor<2x4xf32>
  %n = glow_high.get @n : tensor<1x3xi64>
  // expected-error @below {{indices and updates must have one shape}}
  %0 = glow_high.scatter_elements %x, %n, %y : tensor<2x3xf32>
}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @i : tensor<2xi64> {input}
glow_high.placeholder @q : tensor<2xf32> {input}
glow_high.func @wrong(@x, @i, @q) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %i = glow_high.get @i : tensor<2xi64>
  %q = glow_high.get @q : tensor<2xf32>
  // expected-error @below {{input and indices must have as many axes, at least one: (2, 3), (2,)}}
  %0 = glow_high.scatter_elements %x, %i, %q : tensor<2x3xf32>
}

// -----

glow_high.placeholder @i : tensor<2xi64> {input}
glow_high.placeholder @q : tensor<2xf32> {input}
glow_high.func @wrong(@i, @q) {
  %i = glow_high.get @i : tensor<2xi64>
  %q = glow_high.get @q : tensor<2xf32>
  // expected-error @below {{updates have another element type than the input}}
  %0 = glow_high.scatter_elements %q, %i, %i : tensor<2xf32>
}

// -----

glow_high.placeholder @i : tensor<2xi64> {input}
glow_high.placeholder @q : tensor<2xf32> {input}
glow_high.func @wrong(@i, @q) {
  %i = glow_high.get @i : tensor<2xi64>
  %q = glow_high.get @q : tensor<2xf32>
  // expected-error @below {{reduction must be one of none, add, mul, max, min, not 'sum'}}
  %0 = glow_high.scatter_elements %q, %i, %q {reduction = "sum"} : tensor<2xf32>
}

// -----

glow_high.placeholder @b : tensor<4xi1> {input}
glow_high.placeholder @o : tensor<4x2xi64> {input}
glow_high.func @wrong(@b, @o) {
  %b = glow_high.get @b : tensor<4xi1>
  %o = glow_high.get @o : tensor<4x2xi64>
  // expected-error @below {{reduction 'add' takes numbers, not truth values}}
  %0 = glow_high.scatter_nd %b, %o, %b {reduction = "add"} : tensor<4xi1>
}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @i : tensor<2xi64> {input}
glow_high.placeholder @q : tensor<2xf32> {input}
glow_high.func @wrong(@x, @i, @q) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %i = glow_high.get @i : tensor<2xi64>
  %q = glow_high.get @q : tensor<2xf32>
  // expected-error @below {{updates must have shape (), not (2,)}}
  %0 = glow_high.scatter_nd %x, %i, %q : tensor<2x3xf32>
}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @q : tensor<2xf32> {input}
glow_high.placeholder @o : tensor<4x2xi64> {input}
glow_high.func @wrong(@x, @q, @o) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %q = glow_high.get @q : tensor<2xf32>
  %o = glow_high.get @o : tensor<4x2xi64>
  // expected-error @below {{updates must have shape (4,), not (2,)}}
  %0 = glow_high.scatter_nd %x, %o, %q : tensor<2x3xf32>
}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @i : tensor<2xi64> {input}
glow_high.func @wrong(@x, @i) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %i = glow_high.get @i : tensor<2xi64>
  // expected-error @below {{lengths must have shape (3,)}}
  %0 = glow_high.reverse_sequence %x, %i : tensor<2x3xf32>
}

// -----

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @i : tensor<2xi64> {input}
glow_high.func @wrong(@x, @i) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %i = glow_high.get @i : tensor<2xi64>
  // expected-error @below {{batch_axis and time_axis are the same}}
  %0 = glow_high.reverse_sequence %x, %i {batch_axis = 0} : tensor<2x3xf32>
}

// -----

glow_high.placeholder @i : tensor<2xi64> {input}
glow_high.placeholder @q : tensor<2xf32> {input}
glow_high.func @wrong(@i, @q) {
  %i = glow_high.get @i : tensor<2xi64>
  %q = glow_high.get @q : tensor<2xf32>
  // expected-error @below {{reverse_sequence needs a batch and a time axis, got shape (2,)}}
  %0 = glow_high.reverse_sequence %q, %i : tensor<2xf32>
}
