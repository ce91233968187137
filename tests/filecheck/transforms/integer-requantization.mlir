// Where the target asks for it, codes change their scale by integers alone.

// RUN: glow-opt %s -p 'assign-target{target=scalar requantization=integer},fold-quantization,fold-constants,canonicalize' | filecheck %s
// RUN: not glow-opt %s -p 'assign-target{requantization=decimal}' 2>&1 | filecheck %s --check-prefix=ERROR

// ERROR: no requantization 'decimal' (hint: there are float, integer)

// CHECK: #glow.target<{{.*}}requantization = "integer">

// Sums of products take their bias in their own scale: 3 / (0.5 * 0.25) = 24.

// CHECK-LABEL: glow_high.func @product(
// CHECK:         %[[S:.*]] = glow_high.matmul %x, %{{.*}} : tensor<2x4xi32>
// CHECK:         %[[M:.*]] = glow_high.splat {value = 1073741824 : i32}
// CHECK-NEXT:    %[[N:.*]] = glow_high.splat {value = 32 : i32}
// CHECK-NEXT:    %[[B:.*]] = glow_high.get @{{.*}} : tensor<4xi32>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.integer_rescale %[[S]], %[[M]], %[[N]], %[[B]] {to = !quant.uniform<u8:f32, 0.5>}
// CHECK-NEXT:    glow_high.return %[[Y]]
glow_high.constant @w : tensor<3x4xi8> {value = dense<1> : tensor<3x4xi8>}
glow_high.constant @s : tensor<f32> {value = dense<0.25> : tensor<f32>}
glow_high.constant @b : tensor<4xf32> {value = dense<3.0> : tensor<4xf32>}
glow_high.func @product(%x: tensor<2x3x!quant.uniform<u8:f32, 0.5:7>>) -> tensor<2x4x!quant.uniform<u8:f32, 0.5>> {
  %w = glow_high.get @w : tensor<3x4xi8>
  %s = glow_high.get @s : tensor<f32>
  %b = glow_high.get @b : tensor<4xf32>
  %0 = glow_high.dequantize %x : tensor<2x3xf32>
  %1 = glow_high.dequantize %w, %s : tensor<3x4xf32>
  %2 = glow_high.matmul %0, %1, %b : tensor<2x4xf32>
  %3 = glow_high.quantize %2 {to = !quant.uniform<u8:f32, 0.5>} : tensor<2x4x!quant.uniform<u8:f32, 0.5>>
  glow_high.return %3
}

// Two codes are added in a common scale, with as many binary places as 32 bits have for them.

// CHECK-LABEL: glow_high.func @sum(
// CHECK:         %[[X:.*]] = glow_high.mul %{{.*}}, %{{.*}} : tensor<4xi32>
// CHECK:         %[[Y:.*]] = glow_high.mul %{{.*}}, %{{.*}} : tensor<4xi32>
// CHECK:         %[[S:.*]] = glow_high.add %[[X]], %[[Y]] : tensor<4xi32>
// CHECK:         %[[R:.*]] = glow_high.integer_rescale %[[S]], %{{.*}}, %{{.*}}, %{{.*}} {to = !quant.uniform<i8:f32, 0.5:3>}
// CHECK-NEXT:    glow_high.return %[[R]]
glow_high.func @sum(%x: tensor<4x!quant.uniform<i8:f32, 0.5:1>>, %y: tensor<4x!quant.uniform<i8:f32, 0.3:4>>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>> {
  %0 = glow_high.dequantize %x : tensor<4xf32>
  %1 = glow_high.dequantize %y : tensor<4xf32>
  %2 = glow_high.add %0, %1 : tensor<4xf32>
  %3 = glow_high.quantize %2 {to = !quant.uniform<i8:f32, 0.5:3>} : tensor<4x!quant.uniform<i8:f32, 0.5:3>>
  glow_high.return %3
}

// A function of one code is a table, even where floats would be as fast.

// CHECK-LABEL: glow_high.func @function(
// CHECK:         glow_high.lookup %x
// CHECK-NOT:     f32>
// CHECK:         glow_high.return
glow_high.func @function(%x: tensor<4x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<4xui8> {
  %s = glow_high.get @s : tensor<f32>
  %0 = glow_high.dequantize %x : tensor<4xf32>
  %1 = glow_high.max %0, %s : tensor<4xf32>
  %2 = glow_high.mul %1, %1 : tensor<4xf32>
  %3 = glow_high.quantize %2 {to = !quant.uniform<u8:f32, 0.5>} : tensor<4x!quant.uniform<u8:f32, 0.5>>
  %4 = glow_high.storage_cast %3 {to = ui8} : tensor<4xui8>
  glow_high.return %4
}
