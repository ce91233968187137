// Chains of arithmetic with constants become one product and one sum.

// RUN: glow-opt %s -p merge-arithmetic --split-input-file | filecheck %s
// RUN: glow-opt %s -p merge-arithmetic,merge-arithmetic --split-input-file | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2 accuracy=strict},merge-arithmetic' --split-input-file | filecheck %s --check-prefix=STRICT
// RUN: glow-opt %s -p merge-arithmetic --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// A chain of everything, here with a constant for each row and one for each column.

// CHECK-LABEL: glow_high.func @chain(
// CHECK:         %[[FACTOR:.*]] = glow_high.get @{{.*}} : tensor<2xf32>
// CHECK-NEXT:    %[[PRODUCT:.*]] = glow_high.mul %x, %[[FACTOR]] : tensor<2x2xf32>
// CHECK-NEXT:    %[[ADDEND:.*]] = glow_high.get @{{.*}} : tensor<2xf32>
// CHECK-NEXT:    %[[SUM:.*]] = glow_high.add %[[PRODUCT]], %[[ADDEND]] : tensor<2x2xf32>
// CHECK-NEXT:    glow_high.return %[[SUM]]

// Each step rounds for the accuracy strict.

// STRICT-LABEL: glow_high.func @chain(
// STRICT:         glow_high.mul %x
// STRICT-NEXT:    glow_high.sub
// STRICT-NEXT:    glow_high.neg
// STRICT-NEXT:    glow_high.div

// LOCATIONS: glow_high.add {{.*}} loc(fused["first", "second", "third", "fourth"])
glow_high.constant @two : tensor<2xf32> {value = dense<[2.0, 4.0]> : tensor<2xf32>}
glow_high.func @chain(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %two = glow_high.get @two : tensor<2xf32>
  %three = glow_high.splat {value = 3.0} : tensor<f32>
  %1 = glow_high.mul %x, %two : tensor<2x2xf32> loc("first")
  %2 = glow_high.sub %two, %1 : tensor<2x2xf32> loc("second")
  %3 = glow_high.neg %2 : tensor<2x2xf32> loc("third")
  %4 = glow_high.div %3, %three : tensor<2x2xf32> loc("fourth")
  glow_high.return %4
}

// -----

// Alone, a quotient by powers of two becomes a product, and a batch-norm with constants a product and a sum, whatever
// its axis.

// CHECK-LABEL: glow_high.func @alone(
// CHECK:         glow_high.mul %x, %{{.*}} : tensor<2x2xf32>
// CHECK-NEXT:    glow_high.save
// CHECK:         glow_high.mul %x, %{{.*}} : tensor<2x2xf32>
// CHECK:         glow_high.add %{{.*}}, %{{.*}} : tensor<2x2xf32>
// CHECK-NEXT:    glow_high.save
// STRICT-LABEL: glow_high.func @alone(
// STRICT:         glow_high.mul %x, %{{.*}} : tensor<2x2xf32>
// STRICT-NEXT:    glow_high.save
// STRICT:         glow_high.mul %x, %{{.*}} : tensor<2x2xf32>
// STRICT:         glow_high.add %{{.*}}, %{{.*}} : tensor<2x2xf32>
glow_high.constant @two : tensor<2xf32> {value = dense<[2.0, 4.0]> : tensor<2xf32>}
glow_high.placeholder @x : tensor<2x2xf32> {input}
glow_high.placeholder @y : tensor<2x2xf32> {output}
glow_high.placeholder @z : tensor<2x2xf32> {output}
glow_high.func @alone(@x, @y, @z) {
  %x = glow_high.get @x : tensor<2x2xf32>
  %two = glow_high.get @two : tensor<2xf32>
  %1 = glow_high.div %x, %two : tensor<2x2xf32>
  glow_high.save %1, @y
  %2 = glow_high.batch_normalization %x, %two, %two, %two, %two {axis = 0} : tensor<2x2xf32>
  glow_high.save %2, @z
}

// -----

// A quotient by other numbers stays, with a sum behind it as well; but with more, its rounding is merged.

// CHECK-LABEL: glow_high.func @quotients(
// CHECK:         %[[A:.*]] = glow_high.div %x, %three : tensor<2x2xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.add %[[A]], %three : tensor<2x2xf32>
// CHECK:         %[[C:.*]] = glow_high.mul %x, %{{.*}} : tensor<2x2xf32>
// CHECK-NOT:     glow_high.{{mul|div}}
// CHECK:         glow_high.return %[[B]], %{{.*}}
glow_high.func @quotients(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %three = glow_high.splat {value = 3.0} : tensor<f32>
  %five = glow_high.splat {value = 5.0} : tensor<f32>
  %1 = glow_high.div %x, %three : tensor<2x2xf32>
  %2 = glow_high.add %1, %three : tensor<2x2xf32>
  %3 = glow_high.div %x, %three : tensor<2x2xf32>
  %4 = glow_high.add %3, %three : tensor<2x2xf32>
  %5 = glow_high.mul %4, %five : tensor<2x2xf32>
  glow_high.return %2, %5
}

// -----

// What is read in between ends a chain, and so does what is no constant.

// CHECK-LABEL: glow_high.func @read(
// CHECK:         glow_high.mul %x, %two
// CHECK-NEXT:    glow_high.save
// CHECK-NEXT:    glow_high.mul
// CHECK-NEXT:    glow_high.mul %{{.*}}, %x
// CHECK-NEXT:    glow_high.mul
glow_high.constant @two : tensor<2xf32> {value = dense<[2.0, 4.0]> : tensor<2xf32>}
glow_high.placeholder @x : tensor<2x2xf32> {input}
glow_high.placeholder @y : tensor<2x2xf32> {output}
glow_high.placeholder @z : tensor<2x2xf32> {output}
glow_high.func @read(@x, @y, @z) {
  %x = glow_high.get @x : tensor<2x2xf32>
  %two = glow_high.get @two : tensor<2xf32>
  %1 = glow_high.mul %x, %two : tensor<2x2xf32>
  glow_high.save %1, @y
  %2 = glow_high.mul %1, %two : tensor<2x2xf32>
  %3 = glow_high.mul %2, %x : tensor<2x2xf32>
  %4 = glow_high.mul %3, %two : tensor<2x2xf32>
  glow_high.save %4, @z
}

// -----

// Apart stay addends that cancel, since such a sum rounds to integers; factors that vanish together; a row and a column,
// which make a matrix; quotients by what has no reciprocal; integers.

// CHECK-LABEL: glow_high.func @apart(
// CHECK:         glow_high.add %x, %large
// CHECK-NEXT:    glow_high.sub %{{.*}}, %large
// CHECK:         glow_high.mul %x, %small
// CHECK-NEXT:    glow_high.mul %{{.*}}, %small
// CHECK:         glow_high.mul %x, %row
// CHECK-NEXT:    glow_high.mul %{{.*}}, %column
// CHECK:         glow_high.div %x, %zero
// CHECK:         glow_high.div %i, %three
glow_high.constant @row : tensor<1x2xf32> {value = dense<[[2.0, 4.0]]> : tensor<1x2xf32>}
glow_high.constant @column : tensor<2x1xf32> {value = dense<[[2.0], [4.0]]> : tensor<2x1xf32>}
glow_high.placeholder @x : tensor<2x2xf32> {input}
glow_high.placeholder @i : tensor<2xi32> {input}
glow_high.placeholder @y : tensor<2x2xf32> {output}
glow_high.placeholder @z : tensor<2x2xf32> {output}
glow_high.placeholder @v : tensor<2x2xf32> {output}
glow_high.placeholder @w : tensor<2x2xf32> {output}
glow_high.placeholder @j : tensor<2xi32> {output}
glow_high.func @apart(@x, @i, @y, @z, @v, @w, @j) {
  %x = glow_high.get @x : tensor<2x2xf32>
  %i = glow_high.get @i : tensor<2xi32>
  %row = glow_high.get @row : tensor<1x2xf32>
  %column = glow_high.get @column : tensor<2x1xf32>
  %large = glow_high.splat {value = 12582912.0} : tensor<f32>
  %small = glow_high.splat {value = 1.0e-30} : tensor<f32>
  %zero = glow_high.splat {value = 0.0} : tensor<f32>
  %three = glow_high.splat {value = 3 : i32} : tensor<i32>
  %1 = glow_high.add %x, %large : tensor<2x2xf32>
  %2 = glow_high.sub %1, %large : tensor<2x2xf32>
  glow_high.save %2, @y
  %3 = glow_high.mul %x, %small : tensor<2x2xf32>
  %4 = glow_high.mul %3, %small : tensor<2x2xf32>
  glow_high.save %4, @z
  %5 = glow_high.mul %x, %row : tensor<2x2xf32>
  %6 = glow_high.mul %5, %column : tensor<2x2xf32>
  glow_high.save %6, @v
  %7 = glow_high.div %x, %zero : tensor<2x2xf32>
  glow_high.save %7, @w
  %8 = glow_high.div %i, %three : tensor<2xi32>
  glow_high.save %8, @j
}

// -----

// What a code is made of has its bits: quotients and chains in front of a quantization, a whole number or a comparison
// stay, also behind moves, and the largest of some. Quotients by powers of two have the same bits as products, and what
// a batch-norm is has none of its own.

// CHECK-LABEL: glow_high.func @codes(
// CHECK:         glow_high.div %x, %three
// CHECK-NEXT:    glow_high.quantize
// CHECK:         glow_high.splat {value = 0.25}
// CHECK-NEXT:    glow_high.mul %x
// CHECK-NEXT:    glow_high.quantize
// CHECK:         glow_high.div %x, %three
// CHECK-NEXT:    glow_high.transpose
// CHECK-NEXT:    glow_high.reduce_max
// CHECK-NEXT:    glow_high.floor
// CHECK:         glow_high.mul %x, %three
// CHECK-NEXT:    glow_high.mul %{{.*}}, %three
// CHECK-NEXT:    glow_high.less
// CHECK-NOT:     glow_high.batch_normalization
// CHECK:         glow_high.quantize
glow_high.constant @three : tensor<2xf32> {value = dense<[3.0, 5.0]> : tensor<2xf32>}
glow_high.func @codes(%x: tensor<2x2xf32>)
    -> (tensor<2x2x!quant.uniform<u8:f32, 0.1>>, tensor<2x2x!quant.uniform<u8:f32, 0.1>>, tensor<2xf32>, tensor<2x2xi1>,
        tensor<2x2x!quant.uniform<u8:f32, 0.1>>) {
  %three = glow_high.get @three : tensor<2xf32>
  %four = glow_high.splat {value = 4.0} : tensor<f32>
  %1 = glow_high.div %x, %three : tensor<2x2xf32>
  %a = glow_high.quantize %1 {to = !quant.uniform<u8:f32, 0.1>} : tensor<2x2x!quant.uniform<u8:f32, 0.1>>
  %2 = glow_high.div %x, %four : tensor<2x2xf32>
  %b = glow_high.quantize %2 {to = !quant.uniform<u8:f32, 0.1>} : tensor<2x2x!quant.uniform<u8:f32, 0.1>>
  %3 = glow_high.div %x, %three : tensor<2x2xf32>
  %4 = glow_high.transpose %3 {permutation = [1, 0]} : tensor<2x2xf32>
  %5 = glow_high.reduce_max %4 {axes = [0], keepdims = false} : tensor<2xf32>
  %c = glow_high.floor %5 : tensor<2xf32>
  %6 = glow_high.mul %x, %three : tensor<2x2xf32>
  %7 = glow_high.mul %6, %three : tensor<2x2xf32>
  %d = glow_high.less %7, %four : tensor<2x2xi1>
  %8 = glow_high.batch_normalization %x, %three, %three, %three, %three : tensor<2x2xf32>
  %e = glow_high.quantize %8 {to = !quant.uniform<u8:f32, 0.1>} : tensor<2x2x!quant.uniform<u8:f32, 0.1>>
  glow_high.return %a, %b, %c, %d, %e
}

// -----

// Branches and loops hand them on, in and out.

// CHECK-LABEL: glow_high.func @regions(
// CHECK:         %[[A:.*]] = glow_high.div %x, %three
// CHECK:         glow_high.loop
// CHECK:           glow_high.round
// CHECK:         glow_high.if
// CHECK:           %[[B:.*]] = glow_high.div %x, %three
// CHECK-NEXT:      glow_high.yield %[[B]]
// CHECK:         glow_high.floor
glow_high.func @regions(%x: tensor<4xf32>, %c: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %three = glow_high.splat {value = 3.0} : tensor<f32>
  %0 = glow_high.div %x, %three : tensor<4xf32>
  %last = glow_high.loop %i = 2 (%b = %0) {
    %1 = glow_high.round %b : tensor<4xf32>
    glow_high.yield %1
  } : tensor<4xf32>
  %2 = glow_high.if %c {
    %3 = glow_high.div %x, %three : tensor<4xf32>
    glow_high.yield %3
  } else {
    glow_high.yield %x
  } : tensor<4xf32>
  %4 = glow_high.floor %2 : tensor<4xf32>
  glow_high.return %last, %4
}

// -----

// What a trip yields is read by the next one, and is the result; without trips, what a loop begins with is.

// CHECK-LABEL: glow_high.func @carried(
// CHECK:         %[[FIRST:.*]] = glow_high.div %x, %three
// CHECK:         glow_high.loop
// CHECK:           glow_high.floor
// CHECK:           %[[NEXT:.*]] = glow_high.div %{{.*}}, %three
// CHECK-NEXT:      glow_high.yield %[[NEXT]]
// CHECK:         glow_high.loop %{{.*}} = %n (%{{.*}} = %[[FIRST]])
// CHECK:         glow_high.floor
glow_high.func @carried(%x: tensor<4xf32>, %n: tensor<i64>) -> (tensor<4xf32>, tensor<4xf32>) {
  %three = glow_high.splat {value = 3.0} : tensor<f32>
  %0 = glow_high.div %x, %three : tensor<4xf32>
  %last = glow_high.loop %i = 2 (%a = %x) {
    %1 = glow_high.floor %a : tensor<4xf32>
    %2 = glow_high.softmax %1 {axis = 0} : tensor<4xf32>
    %3 = glow_high.div %2, %three : tensor<4xf32>
    glow_high.yield %3
  } : tensor<4xf32>
  %none = glow_high.loop %j = %n (%b = %0) {
    %4 = glow_high.softmax %b {axis = 0} : tensor<4xf32>
    glow_high.yield %4
  } : tensor<4xf32>
  %5 = glow_high.floor %none : tensor<4xf32>
  glow_high.return %last, %5
}
