// Mistakes in operators that move elements.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{shape (7,) has 7 elements, the input 6}}
  %0 = glow_high.reshape %x {shape = [7]} : tensor<7xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{result has type tensor<5xf32>, but tensor<6xf32> follows from the operands}}
  %0 = glow_high.reshape %x {shape = [6]} : tensor<5xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{(0, 0) is no permutation of 2 axes}}
  %0 = glow_high.transpose %x {permutation = [0, 0]} : tensor<2x2xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{(0,) is no permutation of 2 axes}}
  %0 = glow_high.transpose %x {permutation = [0]} : tensor<2xf32>
}

// -----

glow_high.func @wrong() {
  // expected-error @below {{concat needs at least one operand}}
  %0 = glow_high.concat {axis = 0} : tensor<2xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  // expected-error @below {{shapes (2, 3) and (2, 4) differ outside axis 0}}
  %0 = glow_high.concat %x, %y {axis = 0} : tensor<4x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  // expected-error @below {{axis 2 is out of range for rank 2}}
  %0 = glow_high.concat %x, %y {axis = 2} : tensor<4x3xf32>
}

// -----

glow_high.func @wrong(%i: tensor<2xi64>, %q: tensor<2xf32>) {
  // expected-error @below {{operands differ in element type}}
  %0 = glow_high.concat %q, %i {axis = 0} : tensor<4xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{starts must have 2 elements, one for each axis}}
  %0 = glow_high.slice %x {starts = [0], ends = [1]} : tensor<1x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{starts, ends and steps differ in length}}
  %0 = glow_high.slice %x {starts = [0, 0], ends = [1]} : tensor<1x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{[0, 4) leaves axis 1 of 3 elements}}
  %0 = glow_high.slice %x {starts = [0, 0], ends = [1, 4]} : tensor<1x4xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{[-1, 2) leaves axis 1 of 3 elements}}
  %0 = glow_high.slice %x {starts = [0, -1], ends = [1, 2]} : tensor<1x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{[1, -2) leaves axis 0 of 2 elements}}
  %0 = glow_high.slice %x {starts = [1, 2], ends = [-2, -1], steps = [-1, -1]} : tensor<3x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{a step of 0 leads nowhere}}
  %0 = glow_high.slice %x {starts = [0, 0], ends = [2, 3], steps = [1, 0]} : tensor<2x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{pads must have 4 elements, two for each axis}}
  %0 = glow_high.pad %x {pads = [1, 1]} : tensor<4x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{pads must not be negative; slice instead}}
  %0 = glow_high.pad %x {pads = [0, -1, 0, 0]} : tensor<2x2xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{mode must be one of constant, edge, reflect, wrap, not 'mirror'}}
  %0 = glow_high.pad %x {pads = [0, 1, 0, 0], mode = "mirror"} : tensor<2x4xf32>
}

// -----

glow_high.func @wrong(%x: tensor<3x!quant.uniform<u8:f32, 0.5:7>>) {
  // expected-error @below {{takes a value, or is one of integers behind a storage_cast}}
  %0 = glow_high.pad %x {pads = [0, 1]} : tensor<4x!quant.uniform<u8:f32, 0.5:7>>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %s: tensor<f32>) {
  // expected-error @below {{mode 'edge' takes no value}}
  %0 = glow_high.pad %x, %s {pads = [0, 1, 0, 0], mode = "edge"} : tensor<2x4xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>, %q: tensor<2xf32>) {
  // expected-error @below {{the value must be a scalar, not of shape (2,)}}
  %0 = glow_high.pad %x, %q {pads = [0, 1, 0, 0]} : tensor<2x4xf32>
}

// -----

glow_high.func @wrong(%i: tensor<2xi64>, %s: tensor<f32>) {
  // expected-error @below {{the value has another element type}}
  %0 = glow_high.pad %i, %s {pads = [0, 1]} : tensor<3xi64>
}

// -----

glow_high.func @wrong(%z: tensor<0x3xf32>) {
  // expected-error @below {{mode 'edge' needs an element to repeat along each axis that it pads}}
  %0 = glow_high.pad %z {pads = [1, 0, 0, 0], mode = "edge"} : tensor<1x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{shape (2, 3) does not broadcast to (2, 4)}}
  %0 = glow_high.expand %x {shape = [2, 4]} : tensor<2x4xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{shape (2, 3) does not broadcast to (1, 3)}}
  %0 = glow_high.expand %x {shape = [1, 3]} : tensor<1x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{repeats must have 2 elements, one for each axis}}
  %0 = glow_high.tile %x {repeats = [2]} : tensor<4x3xf32>
}

// -----

glow_high.func @wrong(%x: tensor<2x3xf32>) {
  // expected-error @below {{repeats must not be negative}}
  %0 = glow_high.tile %x {repeats = [2, -1]} : tensor<4x3xf32>
}

// -----

glow_high.func @wide(%x: tensor<1xf32>) {
  // expected-error @below {{result 'result' at position 0 does not verify: has at most 32 axes, not 33}}
  %0 = glow_high.reshape %x {shape = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]} : tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>
}

// -----

glow_high.func @huge() {
  // expected-error@+1 {{a result of 399999999999999999996 elements of f32 fits no memory}}
  %x = glow_high.splat {value = 1.0} : tensor<99999999999999999999x4xf32>
}

// -----

glow_high.func @padded(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{a result of 140737488355328 elements of f32 fits no memory}}
  %pad = glow_high.pad %x {pads = [0, 140737488355324]} : tensor<140737488355328xf32>
  glow_high.return %x
}
