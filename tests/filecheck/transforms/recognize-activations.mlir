// Activation functions that are spelled out in arithmetic become operators.

// RUN: glow-opt %s -p recognize-activations --split-input-file | filecheck %s
// RUN: glow-opt %s -p recognize-activations --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// GELU with its factors in any order and grouping, a constant of one element for a scalar, and a product for a quotient.

// CHECK-LABEL: glow_high.func @gelu(
// CHECK-NEXT:    %[[FIRST:.*]] = glow_high.gelu %x : tensor<4xf32>
// CHECK-NEXT:    %[[SECOND:.*]] = glow_high.gelu %[[FIRST]] : tensor<4xf32>
// CHECK-NEXT:    glow_high.return %[[SECOND]]

// LOCATIONS: glow_high.gelu %x {{.*}} loc(fused["divide", "erf", "sum", "product", "half"])
glow_high.constant @root : tensor<1xf32> {value = dense<0.70710677> : tensor<1xf32>}
glow_high.func @gelu(%x: tensor<4xf32>) -> tensor<4xf32> {
  %root = glow_high.get @root : tensor<1xf32>
  %two = glow_high.splat {value = 1.41421354} : tensor<f32>
  %one = glow_high.splat {value = 1.0} : tensor<f32>
  %half = glow_high.splat {value = 0.5} : tensor<f32>
  %1 = glow_high.div %x, %two : tensor<4xf32> loc("divide")
  %2 = glow_high.erf %1 : tensor<4xf32> loc("erf")
  %3 = glow_high.add %2, %one : tensor<4xf32> loc("sum")
  %4 = glow_high.mul %x, %3 : tensor<4xf32> loc("product")
  %5 = glow_high.mul %4, %half : tensor<4xf32> loc("half")
  %6 = glow_high.mul %root, %5 : tensor<4xf32>
  %7 = glow_high.erf %6 : tensor<4xf32>
  %8 = glow_high.add %one, %7 : tensor<4xf32>
  %9 = glow_high.mul %half, %8 : tensor<4xf32>
  %10 = glow_high.mul %9, %5 : tensor<4xf32>
  glow_high.return %10
}

// -----

// Rules build on one another: a sigmoid, then a swish. Mish is one of a softplus, but the arithmetic of that stays.

// CHECK-LABEL: glow_high.func @nested(
// CHECK-NEXT:    %x = glow_high.get @x
// CHECK:         %[[SWISH:.*]] = glow_high.swish %x {alpha = 2.0} : tensor<4xf32>
// CHECK:         %[[LOG:.*]] = glow_high.log
// CHECK-NEXT:    glow_high.save %[[LOG]], @z
// CHECK:         %[[MISH:.*]] = glow_high.mish %[[SWISH]] : tensor<4xf32>
// CHECK-NEXT:    glow_high.save %[[MISH]], @y
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @z : tensor<4xf32> {output}
glow_high.func @nested(@x, @y, @z) {
  %x = glow_high.get @x : tensor<4xf32>
  %one = glow_high.splat {value = 1.0} : tensor<f32>
  %two = glow_high.splat {value = 2.0} : tensor<f32>
  %1 = glow_high.mul %x, %two : tensor<4xf32>
  %2 = glow_high.neg %1 : tensor<4xf32>
  %3 = glow_high.exp %2 : tensor<4xf32>
  %4 = glow_high.add %3, %one : tensor<4xf32>
  %5 = glow_high.reciprocal %4 : tensor<4xf32>
  %6 = glow_high.mul %x, %5 : tensor<4xf32>
  %plus = glow_high.softplus %6 : tensor<4xf32>
  %7 = glow_high.exp %6 : tensor<4xf32>
  %8 = glow_high.add %one, %7 : tensor<4xf32>
  %9 = glow_high.log %8 : tensor<4xf32>
  glow_high.save %9, @z
  %10 = glow_high.tanh %plus : tensor<4xf32>
  %11 = glow_high.mul %10, %6 : tensor<4xf32>
  glow_high.save %11, @y
}

// -----

// A leaky ReLU as a maximum or a choice; as a maximum only where its slope is flat, and not zero: of infinity, 0·x is no
// number.

// CHECK-LABEL: glow_high.func @leaky(
// CHECK:         glow_high.leaky_relu %x {alpha = 0.25}
// CHECK:         glow_high.leaky_relu %x {alpha = 4.0}
// CHECK:         glow_high.max
// CHECK:         glow_high.max
glow_high.func @leaky(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zero = glow_high.splat {value = 0.0} : tensor<f32>
  %quarter = glow_high.splat {value = 0.25} : tensor<f32>
  %1 = glow_high.mul %quarter, %x : tensor<4xf32>
  %2 = glow_high.max %1, %x : tensor<4xf32>
  %3 = glow_high.div %x, %quarter : tensor<4xf32>
  %4 = glow_high.greater %x, %zero : tensor<4xi1>
  %5 = glow_high.where %4, %x, %3 : tensor<4xf32>
  %6 = glow_high.div %x, %quarter : tensor<4xf32>
  %7 = glow_high.max %6, %x : tensor<4xf32>
  %8 = glow_high.mul %zero, %x : tensor<4xf32>
  %9 = glow_high.max %8, %x : tensor<4xf32>
  glow_high.return %2, %5, %7, %9
}

// -----

// Another number, another value in one place, an intermediate value that something else reads, or a larger result: no.

// CHECK-LABEL: glow_high.func @no(
// CHECK-NOT:     glow_high.{{gelu|swish|sigmoid}}
// CHECK:         glow_high.save %{{.*}}, @e
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @z : tensor<4xf32> {input}
glow_high.placeholder @a : tensor<4xf32> {output}
glow_high.placeholder @b : tensor<4xf32> {output}
glow_high.placeholder @c : tensor<4xf32> {output}
glow_high.placeholder @d : tensor<4xf32> {output}
glow_high.placeholder @e : tensor<2x4xf32> {output}
glow_high.func @no(@x, @z, @a, @b, @c, @d, @e) {
  %x = glow_high.get @x : tensor<4xf32>
  %z = glow_high.get @z : tensor<4xf32>
  %two = glow_high.splat {value = 1.5} : tensor<f32>
  %root = glow_high.splat {value = 1.41421354} : tensor<f32>
  %one = glow_high.splat {value = 1.0} : tensor<f32>
  %wide = glow_high.splat {value = 1.0} : tensor<2x4xf32>
  %half = glow_high.splat {value = 0.5} : tensor<f32>
  %1 = glow_high.div %x, %two : tensor<4xf32>
  %2 = glow_high.erf %1 : tensor<4xf32>
  %3 = glow_high.add %2, %one : tensor<4xf32>
  %4 = glow_high.mul %x, %3 : tensor<4xf32>
  %5 = glow_high.mul %4, %half : tensor<4xf32>
  glow_high.save %5, @a
  %6 = glow_high.div %z, %root : tensor<4xf32>
  %7 = glow_high.erf %6 : tensor<4xf32>
  %8 = glow_high.add %7, %one : tensor<4xf32>
  %9 = glow_high.mul %x, %8 : tensor<4xf32>
  %10 = glow_high.mul %9, %half : tensor<4xf32>
  glow_high.save %10, @b
  %11 = glow_high.neg %x : tensor<4xf32>
  %12 = glow_high.exp %11 : tensor<4xf32>
  glow_high.save %12, @c
  %13 = glow_high.add %12, %one : tensor<4xf32>
  %14 = glow_high.div %one, %13 : tensor<4xf32>
  glow_high.save %14, @d
  %15 = glow_high.neg %z : tensor<4xf32>
  %16 = glow_high.exp %15 : tensor<4xf32>
  %17 = glow_high.add %16, %one : tensor<4xf32>
  %18 = glow_high.div %wide, %17 : tensor<2x4xf32>
  glow_high.save %18, @e
}
