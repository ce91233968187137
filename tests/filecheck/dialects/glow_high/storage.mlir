// Module-level storage and functions, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

// CHECK: glow_high.constant @axes : tensor<2xi64> {value = dense<[1, 2]> : tensor<2xi64>}
glow_high.constant @axes : tensor<2xi64> {value = dense<[1, 2]> : tensor<2xi64>}
// CHECK-NEXT: glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @x : tensor<4xf32> {input}
// CHECK-NEXT: glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @y : tensor<4xf32> {output}
// CHECK-NEXT: glow_high.placeholder @memory : tensor<4xf32> {state, trainable}
glow_high.placeholder @memory : tensor<4xf32> {state, trainable}
// CHECK-NEXT: glow_high.placeholder @ones : tensor<4xf32> {state, value = dense<1.000000e+00> : tensor<4xf32>}
glow_high.placeholder @ones : tensor<4xf32> {state, value = dense<1.0> : tensor<4xf32>}

// CHECK-NEXT: glow_high.func @step(@x, @memory, @y) {
glow_high.func @step(@x, @memory, @y) {
  // CHECK-NEXT: %x = glow_high.get @x : tensor<4xf32>
  %x = glow_high.get @x : tensor<4xf32>
  // CHECK-NEXT: %memory = glow_high.get @memory {mutable} : tensor<4xf32>
  %memory = glow_high.get @memory {mutable} : tensor<4xf32>
  // CHECK-NEXT: %half = glow_high.splat {value = 0.5} : tensor<4xf32>
  %half = glow_high.splat {value = 0.5} : tensor<4xf32>
  // CHECK-NEXT: %sum = glow_high.add %x, %memory : tensor<4xf32>
  %sum = glow_high.add %x, %memory : tensor<4xf32>
  // CHECK-NEXT: %mean = glow_high.mul %sum, %half : tensor<4xf32>
  %mean = glow_high.mul %sum, %half : tensor<4xf32>
  // CHECK-NEXT: glow_high.save %mean, @memory
  glow_high.save %mean, @memory
  // CHECK-NEXT: glow_high.save %mean, @y
  glow_high.save %mean, @y
// CHECK-NEXT: }
}

// Functions share storage and may have attributes of their own.
// CHECK-NEXT: glow_high.func @constants() attributes {test.note = "no bindings"} {
glow_high.func @constants() attributes {test.note = "no bindings"} {
  // CHECK-NEXT: %axes = glow_high.get @axes : tensor<2xi64>
  %axes = glow_high.get @axes : tensor<2xi64>
  // CHECK-NEXT: %one = glow_high.splat {value = 1} : tensor<i64>
  %one = glow_high.splat {value = 1} : tensor<i64>
  // CHECK-NEXT: %byte = glow_high.splat {value = 7 : ui8} : tensor<2x2xui8>
  %byte = glow_high.splat {value = 7 : ui8} : tensor<2x2xui8>
  // CHECK-NEXT: %true = glow_high.splat {value = true} : tensor<2xi1>
  %true = glow_high.splat {value = true} : tensor<2xi1>
  // CHECK-NEXT: %infinite = glow_high.splat {value = -inf} : tensor<2xf32>
  %infinite = glow_high.splat {value = -inf} : tensor<2xf32>
  // CHECK-NEXT: %wide = glow_high.splat {value = 0.25 : f64} : tensor<2xf64>
  %wide = glow_high.splat {value = 2.500000e-01 : f64} : tensor<2xf64>
  // CHECK-NEXT: %large = glow_high.splat {value = -1.4012345678901235e+18 : f64} : tensor<2xf64>
  %large = glow_high.splat {value = -1401234567890123456 : f64} : tensor<2xf64>
  // CHECK-NEXT: %endless = glow_high.splat {value = -inf : f64} : tensor<2xf64>
  %endless = glow_high.splat {value = -inf : f64} : tensor<2xf64>
  // CHECK-NEXT: %narrow = glow_high.splat {value = nan : f16} : tensor<2xf16>
  %narrow = glow_high.splat {value = nan : f16} : tensor<2xf16>
}
