// Conversions to and from quantized elements.

// RUN: GLOW_UNCHANGED

func.func @uniform_quantize(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.uniform_quantize %arg0 : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 34.0:16>>
  %1 = stablehlo.add %0, %0 : tensor<2x3x!quant.uniform<i8:f32, 34.0:16>>
  %2 = stablehlo.uniform_dequantize %1 : (tensor<2x3x!quant.uniform<i8:f32, 34.0:16>>) -> tensor<2x3xf32>
  %3 = stablehlo.uniform_quantize %arg0 : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, {0.1, 0.2:3, 0.5}>>
  func.return
}
