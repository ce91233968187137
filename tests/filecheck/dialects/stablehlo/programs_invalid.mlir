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
