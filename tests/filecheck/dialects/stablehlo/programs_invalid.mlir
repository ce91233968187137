// Mistakes in programs of StableHLO: syntax, and regions.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: func.func @right

func.func @right() {
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>) {
  // expected-error @below {{expected an operand or a field}}
  %0 = stablehlo.reverse %x, , : tensor<2xf32>
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>) {
  // expected-error @below {{expected ', dims ='}}
  %0 = stablehlo.reverse %x : tensor<2xf32>
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>) {
  // expected-error @below {{expected the types of operands and results, as '(type, type) -> type'}}
  %0 = stablehlo.reshape %x : tensor<2xf32>
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>) {
  // expected-error @below {{'dimensions' is given twice}}
  %0 = stablehlo.reverse %x, dims = [0] {dimensions = array<i64: 0>} : tensor<2xf32>
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>) {
  // expected-error @below {{unknown stablehlo.comparison_direction 'LESS'; there are EQ, NE, GE, GT, LE, LT}}
  %0 = stablehlo.compare LESS, %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>) {
  // expected-error @below {{a format is e8m10 (8 bits of exponent, 10 of mantissa), not f16}}
  %0 = stablehlo.reduce_precision %x, format = f16 : tensor<2xf32>
  func.return
}

// -----

func.func @wrong(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error @below {{a window has stride, pad, lhs_dilate, rhs_dilate, reverse, not 'step'}}
  %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, f]x[i, o]->[b, f], window = {step = []} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>, %y: tensor<f32>) {
  // expected-error @below {{a reduction of one tensor applies stablehlo.add, stablehlo.and, stablehlo.maximum, stablehlo.minimum, stablehlo.multiply, stablehlo.or, stablehlo.xor, not 'stablehlo.subtract'}}
  %0 = stablehlo.reduce(%x init: %y) applies stablehlo.subtract across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
  func.return
}

// -----

func.func @wrong(%x: tensor<i32>) {
  // expected-error @below {{expected 1 types for as many operands, not 2}}
  %0 = stablehlo.while(%a = %x) : tensor<i32>, tensor<i32>
  cond {
  } do {
  }
  func.return
}

// -----

func.func @wrong(%x: tensor<i32>, %c: tensor<i1>) {
  // expected-error @below {{region 0 returns 2 values, not 1}}
  %0 = stablehlo.while(%a = %x) : tensor<i32>
  cond {
    stablehlo.return %c, %c : tensor<i1>, tensor<i1>
  } do {
    stablehlo.return %a : tensor<i32>
  }
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>, %y: tensor<f32>) {
  // expected-error @below {{the body has 1 arguments, not 2}}
  %0 = "stablehlo.reduce"(%x, %y) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>) {
  // expected-error @below {{region 0 returns 2 values, not 1}}
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a, %b : tensor<f32>, tensor<f32>
  }) : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @wrong(%x: tensor<i1>) {
  // expected-error @below {{region 0 has arguments}}
  %0 = "stablehlo.if"(%x) ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }, {
    %b = stablehlo.constant dense<1.0> : tensor<f32>
    stablehlo.return %b : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  func.return
}

// -----

func.func @wrong(%x: tuple<tensor<2xf32>>) {
  // expected-error @below {{has no item 1}}
  %0 = stablehlo.get_tuple_element %x[1] : (tuple<tensor<2xf32>>) -> tensor<2xf32>
  func.return
}

// -----

func.func @wrong(%x: tuple<tensor<2xf32>>) {
  // expected-error @below {{the item is of type tensor<2xf32>, not tensor<3xf32>}}
  %0 = stablehlo.get_tuple_element %x[0] : (tuple<tensor<2xf32>>) -> tensor<3xf32>
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>) {
  // expected-error @below {{the result is no tuple of tensor<2xf32>, but tuple<tensor<3xf32>>}}
  %0 = "stablehlo.tuple"(%x) : (tensor<2xf32>) -> tuple<tensor<3xf32>>
  func.return
}

// -----

func.func @wrong(%x: tensor<2xcomplex<f32>>) {
  // expected-error @below {{the result has elements of f32, not tensor<2xf64>}}
  %0 = stablehlo.abs %x : (tensor<2xcomplex<f32>>) -> tensor<2xf64>
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>, %low: tensor<3xf32>) {
  // expected-error @below {{a limit has type tensor<3xf32>, the operand tensor<2xf32>}}
  %0 = stablehlo.clamp %low, %x, %x : (tensor<3xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>) {
  // expected-error @below {{the result has type tensor<3xf32>, the operand tensor<2xf32>}}
  %0 = stablehlo.clamp %x, %x, %x : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @wrong(%x: tensor<3xi8>) {
  // expected-error @below {{the bits of tensor<3xi8> are not those of tensor<i32>}}
  %0 = stablehlo.bitcast_convert %x : (tensor<3xi8>) -> tensor<i32>
  func.return
}

// -----

func.func @wrong(%x: tensor<2xf32>, %i: tensor<i32>) {
  // expected-error @below {{operands and results differ in the type of elements: tensor<2xf32>, tensor<1xf64>}}
  %0 = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<2xf32>, tensor<i32>) -> tensor<1xf64>
  func.return
}

// -----

func.func @wrong(%x: tensor<2x3xf32>, %y: tensor<2xf32>) {
  // expected-error @below {{tensor<2x3xf32> and tensor<2xf32> are no vectors or matrices that fit}}
  %0 = stablehlo.dot %x, %y : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @wrong(%a: tensor<2x2xf32>, %b: tensor<3x2xf32>) {
  // expected-error @below {{tensor<3x2xf32> is no right side of tensor<2x2xf32>}}
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  func.return
}

// -----

func.func @wrong(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error @below {{tensor<2xf32> has neither the shape of tensor<2x3xf32> nor 3 items}}
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s) <{epsilon = 1.0 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @wrong(%x: tensor<4xf32>) {
  // expected-error @below {{the result has type tensor<4xcomplex<f32>>, but the shape 3 follows}}
  %0 = stablehlo.fft %x, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<4xcomplex<f32>>
  func.return
}

// -----

func.func @wrong(%x: tensor<4xf32>) {
  // expected-error @below {{the last dimensions of tensor<4xf32> are not [6]}}
  %0 = stablehlo.fft %x, type = RFFT, length = [6] : (tensor<4xf32>) -> tensor<4xcomplex<f32>>
  func.return
}

// -----

func.func @wrong(%x: tensor<4xcomplex<f32>>) {
  // expected-error @below {{2 lengths are not one to three of tensor<4xcomplex<f32>>}}
  %0 = stablehlo.fft %x, type = FFT, length = [4, 4] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  func.return
}

// -----

func.func @wrong(%x: tensor<2x3xf32>, %y: tensor<2xf32>) {
  // expected-error @below {{tensor<2x3xf32> and tensor<2xf32> do not broadcast}}
  %0 = chlo.broadcast_add %x, %y : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}
