// What a profile knows becomes codes between operators that compute on codes, and numbers again in front of others.

// RUN: glow-opt %s -p 'quantize{profile="%S/quantize.profile.json"}' | filecheck %s
// RUN: glow-opt %s -p 'quantize{profile="%S/quantize.profile.json" schema=symmetric-with-power2-scale per_channel=false keep=second,add},cse' | filecheck %s --check-prefix=POWER
// RUN: glow-opt %s -p 'quantize{profile="%S/quantize.profile.json" precision=int16}' | filecheck %s --check-prefix=WIDE
// RUN: not glow-opt %s -p 'quantize{profile="%S/quantize.profile.json" assert_all=true}' 2>&1 | filecheck %s --check-prefix=ALL
// RUN: glow-opt %s -p 'quantize{profile="%S/quantize.profile.json" assert_all=true keep=softmax}' | filecheck %s
// RUN: not glow-opt %s -p 'quantize{profile="%S/quantize.profile.json" keep=third}' 2>&1 | filecheck %s --check-prefix=KEEP
// RUN: not glow-opt %s -p 'quantize{profile="%S/quantize.mlir"}' 2>&1 | filecheck %s --check-prefix=FILE
// RUN: not glow-opt %S/instrument-profile.mlir -p 'quantize{profile="%S/quantize.profile.json"}' 2>&1 | filecheck %s --check-prefix=OTHER
// RUN: not glow-opt %s -p 'quantize{profile="%S/quantize.profile.json" schema=none}' 2>&1 | filecheck %s --check-prefix=WORD
// RUN: glow-opt %s -p 'quantize{profile="%S/quantize.tail.profile.json" calibrations="im*=percentile"}' | filecheck %s --check-prefix=OWN
// RUN: not glow-opt %s -p 'quantize{profile="%S/quantize.profile.json" calibrations="third:0=mse"}' 2>&1 | filecheck %s --check-prefix=VALUE
// RUN: not glow-opt %s -p 'quantize' 2>&1 | filecheck %s --check-prefix=NONE

glow_high.placeholder @image : tensor<1x4x4x1xf32> {input}
glow_high.placeholder @y : tensor<1x2xf32> {output}
glow_high.constant @filter : tensor<2x1x1x1xf32> {value = dense<[[[[0.5]]], [[[-2.0]]]]> : tensor<2x1x1x1xf32>}
glow_high.constant @bias : tensor<2xf32> {value = dense<[0.5, 1.0]> : tensor<2xf32>}
glow_high.constant @second : tensor<2x1x1x2xf32> {value = dense<[[[[0.5, 0.25]]], [[[1.0, 2.0]]]]> : tensor<2x1x1x2xf32>}
glow_high.constant @weights : tensor<8x2xf32> {value = dense<0.25> : tensor<8x2xf32>}
glow_high.func @main(@image, @y) {
  %image = glow_high.get @image : tensor<1x4x4x1xf32>
  %filter = glow_high.get @filter : tensor<2x1x1x1xf32>
  %bias = glow_high.get @bias : tensor<2xf32>
  %c = glow_high.conv %image, %filter, %bias : tensor<1x4x4x2xf32> loc("first")
  %r = glow_high.relu %c : tensor<1x4x4x2xf32> loc("relu")
  %g = glow_high.get @second : tensor<2x1x1x2xf32>
  %d = glow_high.conv %r, %g : tensor<1x4x4x2xf32> loc("second")
  %a = glow_high.add %r, %d : tensor<1x4x4x2xf32> loc("add")
  %p = glow_high.max_pool %a {kernel_shape = [2, 2], strides = [2, 2]} : tensor<1x2x2x2xf32> loc("pool")
  %f = glow_high.reshape %p {shape = [1, 8]} : tensor<1x8xf32> loc("flatten")
  %w = glow_high.get @weights : tensor<8x2xf32>
  %m = glow_high.matmul %f, %w : tensor<1x2xf32> loc("classifier")
  %s = glow_high.softmax %m {axis = 1} : tensor<1x2xf32> loc("softmax")
  glow_high.save %s, @y
}

// The input; a ReLU in the loop of its convolution, whose sums stay numbers; a filter with a scale for each channel.

// CHECK:      glow_high.func @main(@image, @y) {
// CHECK-NEXT:   %image = glow_high.get @image
// CHECK-NEXT:   %[[Q0:.*]] = glow_high.quantize %image {to = !quant.uniform<u8:f32, 0.01568627543747425:64>}
// CHECK-NEXT:   %[[X0:.*]] = glow_high.dequantize %[[Q0]] : tensor<1x4x4x1xf32>
// CHECK-NEXT:   %[[C0:.*]] = glow_high.get @filter_1 : tensor<2x1x1x1xi8>
// CHECK-NEXT:   %[[S0:.*]] = glow_high.get @filter_scale : tensor<2x1x1x1xf32>
// CHECK-NEXT:   %[[W0:.*]] = glow_high.dequantize %[[C0]], %[[S0]] : tensor<2x1x1x1xf32>
// CHECK-NEXT:   %[[B0:.*]] = glow_high.get @bias_1 : tensor<2xf32>
// CHECK-NEXT:   %[[Y0:.*]] = glow_high.conv %[[X0]], %[[W0]], %[[B0]]
// CHECK-NEXT:   %[[R0:.*]] = glow_high.relu %[[Y0]]
// CHECK-NEXT:   %[[Q1:.*]] = glow_high.quantize %[[R0]] {to = !quant.uniform<u8:f32, 0.0117647061124444>}
// CHECK-NEXT:   %[[X1:.*]] = glow_high.dequantize %[[Q1]]

// A residual, added to sums before they are rounded; what is moved keeps its scale.

// CHECK:        %[[Y1:.*]] = glow_high.conv %[[X1]], %{{.*}}
// CHECK-NEXT:   %[[A:.*]] = glow_high.add %[[X1]], %[[Y1]]
// CHECK-NEXT:   %[[Q2:.*]] = glow_high.quantize %[[A]] {to = !quant.uniform<u8:f32, 0.03529411926865578>}
// CHECK-NEXT:   %[[X2:.*]] = glow_high.dequantize %[[Q2]]
// CHECK-NEXT:   %[[P:.*]] = glow_high.max_pool %[[X2]]
// CHECK-NEXT:   glow_high.quantize %[[P]] {to = !quant.uniform<u8:f32, 0.03529411926865578>}
// CHECK:        %[[F:.*]] = glow_high.reshape
// CHECK-NEXT:   glow_high.quantize %[[F]] {to = !quant.uniform<u8:f32, 0.03529411926865578>}

// Behind the last product are numbers.

// CHECK:        %[[M:.*]] = glow_high.matmul
// CHECK-NEXT:   %[[S:.*]] = glow_high.softmax %[[M]]
// CHECK-NEXT:   glow_high.save %[[S]], @y

// One scale for all channels, a power of two; what is kept in floats, and the ReLU in front of it, are as they were.

// POWER:        glow_high.quantize %image {to = !quant.uniform<i8:f32, 0.03125>}
// POWER:        %[[S:.*]] = glow_high.splat {value = 0.03125} : tensor<f32>
// POWER-NEXT:   glow_high.dequantize %{{.*}}, %[[S]] : tensor<2x1x1x1xf32>
// POWER:        %[[R:.*]] = glow_high.relu
// POWER-NEXT:   %[[W:.*]] = glow_high.get @second : tensor<2x1x1x2xf32>
// POWER-NEXT:   %[[Y:.*]] = glow_high.conv %[[R]], %[[W]]
// POWER-NEXT:   %[[A:.*]] = glow_high.add %[[R]], %[[Y]]
// POWER-NEXT:   glow_high.quantize %[[A]] {to = !quant.uniform<i8<0:127>:f32, 0.125>}

// WIDE:         glow_high.quantize %image {to = !quant.uniform<i16:f32, 6.103608757257462e-05:-16384>}
// WIDE:         glow_high.get @filter_1 : tensor<2x1x1x1xi16>

// A value whose own calibration leaves out the one number at the end of its range.

// OWN:          glow_high.quantize %image {to = !quant.uniform<u8:f32, 0.007843137718737125:127>}
// OWN:          glow_high.quantize %{{.*}} {to = !quant.uniform<u8:f32, 0.0117647061124444>}

// ALL:   error: 1 operator cannot be quantized: softmax ('softmax') (hint: keep it in floats by name or kind)
// KEEP:  error: no node to keep in floats is called 'third'
// FILE:  quantize.mlir: error: is no profile, or is damaged
// OTHER: quantize.profile.json: error: is the profile of another graph
// WORD:  error: no schema 'none' (hint: there are asymmetric, symmetric, symmetric-with-uint8, symmetric-with-power2-scale)
// NONE:  error: the pass 'quantize' needs a profile (hint: quantize{profile="model.profile.json"})
// VALUE: error: no value to calibrate is called 'third:0' (hint: names as the profile has them)
