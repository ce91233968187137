// Operations on each element, in the readable form and in the generic one.

// RUN: GLOW_UNCHANGED

func.func @abs(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.abs %arg0 : tensor<2x3xf32>
  func.return
}

func.func @cbrt(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.cbrt %arg0 : tensor<2x3xf32>
  func.return
}

func.func @ceil(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.ceil %arg0 : tensor<2x3xf32>
  func.return
}

func.func @cosine(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.cosine %arg0 : tensor<2x3xf32>
  func.return
}

func.func @exponential(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.exponential %arg0 : tensor<2x3xf32>
  func.return
}

func.func @exponential_minus_one(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.exponential_minus_one %arg0 : tensor<2x3xf32>
  func.return
}

func.func @floor(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.floor %arg0 : tensor<2x3xf32>
  func.return
}

func.func @log(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.log %arg0 : tensor<2x3xf32>
  func.return
}

func.func @log_plus_one(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.log_plus_one %arg0 : tensor<2x3xf32>
  func.return
}

func.func @logistic(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.logistic %arg0 : tensor<2x3xf32>
  func.return
}

func.func @negate(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.negate %arg0 : tensor<2x3xf32>
  func.return
}

func.func @round_nearest_afz(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.round_nearest_afz %arg0 : tensor<2x3xf32>
  func.return
}

func.func @round_nearest_even(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.round_nearest_even %arg0 : tensor<2x3xf32>
  func.return
}

func.func @rsqrt(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.rsqrt %arg0 : tensor<2x3xf32>
  func.return
}

func.func @sign(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.sign %arg0 : tensor<2x3xf32>
  func.return
}

func.func @sine(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.sine %arg0 : tensor<2x3xf32>
  func.return
}

func.func @sqrt(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.sqrt %arg0 : tensor<2x3xf32>
  func.return
}

func.func @tan(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.tan %arg0 : tensor<2x3xf32>
  func.return
}

func.func @tanh(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<2x3xf32>
  func.return
}

func.func @exponential_2(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-02, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x3xf32>
  func.return
}

func.func @exponential_3(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2x3xf32>
  func.return
}

func.func @tanh_2(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.tanh %arg0 {mhlo.frontend = "x"} : tensor<2x3xf32>
  func.return
}

func.func @abs_2(%arg0: tensor<2x3xcomplex<f32>>) {
  %0 = stablehlo.abs %arg0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
  func.return
}

func.func @real(%arg0: tensor<2x3xcomplex<f32>>) {
  %0 = stablehlo.real %arg0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
  func.return
}

func.func @imag(%arg0: tensor<2x3xcomplex<f32>>) {
  %0 = stablehlo.imag %arg0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
  func.return
}

func.func @complex(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.complex %arg0, %arg1 : tensor<2x3xcomplex<f32>>
  func.return
}

func.func @abs_3(%arg0: tensor<?x3xf32>) {
  %0 = stablehlo.abs %arg0 : (tensor<?x3xf32>) -> tensor<2x3xf32>
  func.return
}

func.func @add(%arg0: tensor<?x3xf32>, %arg1: tensor<?x3xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<2x3xf32>
  func.return
}

func.func @add_2(%arg0: tensor<?x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : (tensor<?x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

func.func @abs_4(%arg0: tensor<?x3xf32, #stablehlo.bounds<4, ?>>) {
  %0 = stablehlo.abs %arg0 : tensor<?x3xf32, #stablehlo.bounds<4, ?>>
  func.return
}

func.func @not(%arg0: tensor<2x3xi32>) {
  %0 = stablehlo.not %arg0 : tensor<2x3xi32>
  func.return
}

func.func @popcnt(%arg0: tensor<2x3xi32>) {
  %0 = stablehlo.popcnt %arg0 : tensor<2x3xi32>
  func.return
}

func.func @count_leading_zeros(%arg0: tensor<2x3xi32>) {
  %0 = stablehlo.count_leading_zeros %arg0 : tensor<2x3xi32>
  func.return
}

func.func @convert(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.convert %arg0 : (tensor<2x3xf32>) -> tensor<2x3xi32>
  func.return
}

func.func @convert_2(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.convert %arg0 : tensor<2x3xf32>
  func.return
}

func.func @bitcast_convert(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.bitcast_convert %arg0 : (tensor<2x3xf32>) -> tensor<2x3xi32>
  func.return
}

func.func @is_finite(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.is_finite %arg0 : (tensor<2x3xf32>) -> tensor<2x3xi1>
  func.return
}

func.func @add_3(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>
  func.return
}

func.func @atan2(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.atan2 %arg0, %arg1 : tensor<2x3xf32>
  func.return
}

func.func @divide(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.divide %arg0, %arg1 : tensor<2x3xf32>
  func.return
}

func.func @maximum(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.maximum %arg0, %arg1 : tensor<2x3xf32>
  func.return
}

func.func @minimum(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.minimum %arg0, %arg1 : tensor<2x3xf32>
  func.return
}

func.func @multiply(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.multiply %arg0, %arg1 : tensor<2x3xf32>
  func.return
}

func.func @power(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.power %arg0, %arg1 : tensor<2x3xf32>
  func.return
}

func.func @remainder(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.remainder %arg0, %arg1 : tensor<2x3xf32>
  func.return
}

func.func @subtract(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.subtract %arg0, %arg1 : tensor<2x3xf32>
  func.return
}

func.func @and(%arg0: tensor<2x3xi32>, %arg1: tensor<2x3xi32>) {
  %0 = stablehlo.and %arg0, %arg1 : tensor<2x3xi32>
  func.return
}

func.func @or(%arg0: tensor<2x3xi32>, %arg1: tensor<2x3xi32>) {
  %0 = stablehlo.or %arg0, %arg1 : tensor<2x3xi32>
  func.return
}

func.func @xor(%arg0: tensor<2x3xi32>, %arg1: tensor<2x3xi32>) {
  %0 = stablehlo.xor %arg0, %arg1 : tensor<2x3xi32>
  func.return
}

func.func @shift_left(%arg0: tensor<2x3xi32>, %arg1: tensor<2x3xi32>) {
  %0 = stablehlo.shift_left %arg0, %arg1 : tensor<2x3xi32>
  func.return
}

func.func @shift_right_arithmetic(%arg0: tensor<2x3xi32>, %arg1: tensor<2x3xi32>) {
  %0 = stablehlo.shift_right_arithmetic %arg0, %arg1 : tensor<2x3xi32>
  func.return
}

func.func @shift_right_logical(%arg0: tensor<2x3xi32>, %arg1: tensor<2x3xi32>) {
  %0 = stablehlo.shift_right_logical %arg0, %arg1 : tensor<2x3xi32>
  func.return
}

func.func @compare(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.compare LT, %arg0, %arg1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  func.return
}

func.func @compare_2(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.compare EQ, %arg0, %arg1, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  func.return
}

func.func @compare_3(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.compare GE, %arg0, %arg1, TOTALORDER : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  func.return
}

func.func @select(%arg0: tensor<2x3xi1>, %arg1: tensor<2x3xf32>, %arg2: tensor<2x3xf32>) {
  %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<2x3xi1>, tensor<2x3xf32>
  func.return
}

func.func @select_2(%arg0: tensor<i1>, %arg1: tensor<2x3xf32>, %arg2: tensor<2x3xf32>) {
  %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<2x3xf32>
  func.return
}

func.func @select_3(%arg0: tensor<2x3xi1>, %arg1: tensor<2x?xf32>, %arg2: tensor<2x3xf32>) {
  %0 = stablehlo.select %arg0, %arg1, %arg2 : (tensor<2x3xi1>, tensor<2x?xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

func.func @clamp(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>, %arg2: tensor<2x3xf32>) {
  %0 = stablehlo.clamp %arg0, %arg1, %arg2 : tensor<2x3xf32>
  func.return
}

func.func @clamp_2(%arg0: tensor<f32>, %arg1: tensor<2x3xf32>, %arg2: tensor<f32>) {
  %0 = stablehlo.clamp %arg0, %arg1, %arg2 : (tensor<f32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  func.return
}

func.func @reduce_precision(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.reduce_precision %arg0, format = e8m10 : tensor<2x3xf32>
  func.return
}
