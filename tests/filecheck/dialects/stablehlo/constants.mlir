// Constants of all types, and counted numbers.

// RUN: GLOW_UNCHANGED

func.func @constant() {
  %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
  func.return
}

func.func @constant_2() {
  %c = stablehlo.constant dense<[[1, 2]]> : tensor<1x2xi32>
  func.return
}

func.func @constant_3() {
  %c = stablehlo.constant dense<true> : tensor<i1>
  func.return
}

func.func @constant_4() {
  %cst = stablehlo.constant dense<(1.000000e+00,2.000000e+00)> : tensor<2xcomplex<f32>>
  func.return
}

func.func @constant_5() {
  %c = stablehlo.constant dense<[1, -2]> : tensor<2xi4>
  func.return
}

func.func @constant_6() {
  %c = stablehlo.constant dense<[1, 3]> : tensor<2xui2>
  func.return
}

func.func @constant_7() {
  %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf8E4M3FN>
  func.return
}

func.func @constant_8() {
  %cst = stablehlo.constant dense<[1.000000e+00, 5.000000e-01]> : tensor<2xf8E5M2>
  func.return
}

func.func @constant_9() {
  %cst = stablehlo.constant dense<[1.000000e+00, 0x7c]> : tensor<2xf8E4M3>
  func.return
}

func.func @constant_10() {
  %cst = stablehlo.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf4E2M1FN>
  func.return
}

func.func @constant_11() {
  %cst = stablehlo.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf8E8M0FNU>
  func.return
}

func.func @constant_12() {
  %cst = stablehlo.constant dense<> : tensor<0xf32>
  func.return
}

func.func @constant_13() {
  %cst = stablehlo.constant dense<0x7f800000> : tensor<f32>
  func.return
}

func.func @constant_14() {
  %cst = stablehlo.constant dense<[0xffffffff, 1.500000e+00]> : tensor<2xf32>
  func.return
}

func.func @constant_15() {
  %c = stablehlo.constant dense<18446744073709551615> : tensor<1xui64>
  func.return
}

func.func @constant_16() {
  %cst = stablehlo.constant {a = 1 : i32} dense<1.000000e+00> : tensor<2xf32>
  func.return
}

func.func @iota() {
  %0 = stablehlo.iota dim = 1 : tensor<2x3xf32>
  func.return
}

func.func @dynamic_iota(%arg0: tensor<2xi64>) {
  %0 = stablehlo.dynamic_iota %arg0, dim = 1 : (tensor<2xi64>) -> tensor<?x?xf32>
  func.return
}
