// Conversions in a row: the first is gone where it loses nothing, or only what the next one loses too.

// RUN: glow-opt %s -p canonicalize | filecheck %s

glow_high.placeholder @h : tensor<4xf16> {input}
glow_high.placeholder @n : tensor<4xi32> {input}
glow_high.placeholder @y_f16 : tensor<4xf16> {output}
glow_high.placeholder @y_f64 : tensor<4xf64> {output}
glow_high.placeholder @y_f32 : tensor<4xf32> {output}
glow_high.placeholder @y_i8 : tensor<4xi8> {output}

// CHECK-LABEL: glow_high.func @there_and_back(
// CHECK-NEXT:    %h = glow_high.get @h
// CHECK-NEXT:    glow_high.save %h, @y_f16
// CHECK-NEXT:    %[[D:.*]] = glow_high.cast %h {to = f64} : tensor<4xf64>
// CHECK-NEXT:    glow_high.save %[[D]], @y_f64
glow_high.func @there_and_back(@h, @y_f16, @y_f64) {
  %h = glow_high.get @h : tensor<4xf16>
  %0 = glow_high.cast %h {to = f32} : tensor<4xf32>
  %1 = glow_high.cast %0 {to = f16} : tensor<4xf16>
  glow_high.save %1, @y_f16
  %2 = glow_high.cast %0 {to = f64} : tensor<4xf64>
  glow_high.save %2, @y_f64
}

// Integers wrap the same way at once.
// CHECK-LABEL: glow_high.func @wrap(
// CHECK-NEXT:    %[[A:.*]] = glow_high.cast %n {to = i8} : tensor<4xi8>
// CHECK-NEXT:    glow_high.return %[[A]]
glow_high.func @wrap(%n: tensor<4xi32>) -> tensor<4xi8> {
  %0 = glow_high.cast %n {to = i16} : tensor<4xi16>
  %1 = glow_high.cast %0 {to = i8} : tensor<4xi8>
  glow_high.return %1
}

// An integer as a float saturates; f32 has not all of i32; f16 has not all of f32.
// CHECK-LABEL: glow_high.func @stay(
// CHECK:         %[[A:.*]] = glow_high.cast %n {to = f64}
// CHECK-NEXT:    %[[B:.*]] = glow_high.cast %[[A]] {to = i8}
// CHECK-NEXT:    glow_high.save %[[B]], @y_i8
// CHECK-NEXT:    %[[C:.*]] = glow_high.cast %n {to = f32}
// CHECK-NEXT:    %[[D:.*]] = glow_high.cast %[[C]] {to = f64}
// CHECK-NEXT:    glow_high.save %[[D]], @y_f64
// CHECK-NEXT:    %[[E:.*]] = glow_high.cast %n {to = i8}
// CHECK-NEXT:    %[[F:.*]] = glow_high.cast %[[E]] {to = f32}
// CHECK-NEXT:    glow_high.save %[[F]], @y_f32
glow_high.func @stay(@n, @y_i8, @y_f64, @y_f32) {
  %n = glow_high.get @n : tensor<4xi32>
  %0 = glow_high.cast %n {to = f64} : tensor<4xf64>
  %1 = glow_high.cast %0 {to = i8} : tensor<4xi8>
  glow_high.save %1, @y_i8
  %2 = glow_high.cast %n {to = f32} : tensor<4xf32>
  %3 = glow_high.cast %2 {to = f64} : tensor<4xf64>
  glow_high.save %3, @y_f64
  %4 = glow_high.cast %n {to = i8} : tensor<4xi8>
  %5 = glow_high.cast %4 {to = f32} : tensor<4xf32>
  glow_high.save %5, @y_f32
}
