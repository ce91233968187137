// What is equal gets one form.

// RUN: glow-opt %s -p deduplicate --split-input-file | filecheck %s
// RUN: glow-opt %s -p deduplicate,cse --split-input-file | filecheck %s --check-prefix=CSE

// Equal constants are read under one name, and operands that may be exchanged come in order of definition: then `cse`
// finds one sum.

// CHECK-LABEL: glow_high.func @equal(
// CHECK:         %[[FIRST:.*]] = glow_high.get @first
// CHECK-NEXT:    %[[SECOND:.*]] = glow_high.get @first
// CHECK:         glow_high.add %x, %[[FIRST]]
// CHECK-NEXT:    glow_high.add %x, %[[SECOND]]
// CHECK-NEXT:    glow_high.max %x, %z
// CHECK-NEXT:    glow_high.max %x, %z

// CSE-LABEL: glow_high.func @equal(
// CSE:         glow_high.add
// CSE-NEXT:    glow_high.max
// CSE-NEXT:    glow_high.save
glow_high.constant @first : tensor<2xf32> {value = dense<[2.0, 4.0]> : tensor<2xf32>}
glow_high.constant @second : tensor<2xf32> {value = dense<[2.0, 4.0]> : tensor<2xf32>}
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.placeholder @z : tensor<2xf32> {input}
glow_high.placeholder @a : tensor<2xf32> {output}
glow_high.placeholder @b : tensor<2xf32> {output}
glow_high.placeholder @c : tensor<2xf32> {output}
glow_high.placeholder @d : tensor<2xf32> {output}
glow_high.func @equal(@x, @z, @a, @b, @c, @d) {
  %first = glow_high.get @first : tensor<2xf32>
  %second = glow_high.get @second : tensor<2xf32>
  %x = glow_high.get @x : tensor<2xf32>
  %z = glow_high.get @z : tensor<2xf32>
  %1 = glow_high.add %first, %x : tensor<2xf32>
  %2 = glow_high.add %x, %second : tensor<2xf32>
  %3 = glow_high.max %x, %z : tensor<2xf32>
  %4 = glow_high.max %z, %x : tensor<2xf32>
  glow_high.save %1, @a
  glow_high.save %2, @b
  glow_high.save %3, @c
  glow_high.save %4, @d
}

// -----

// Constants of one value but two shapes stay apart, and so do operands that must not be exchanged. What is uniform is a
// splat where elements are read one by one, and a constant elsewhere.

// CHECK-LABEL: glow_high.func @apart(
// CHECK:         %[[FLAT:.*]] = glow_high.get @flat
// CHECK:         %[[TALL:.*]] = glow_high.get @tall
// CHECK:         %[[ONES:.*]] = glow_high.splat {value = 1.0} : tensor<2xf32>
// CHECK:         glow_high.sub %[[FLAT]], %x
// CHECK-NEXT:    glow_high.sub %x, %[[TALL]]
// CHECK-NEXT:    glow_high.add %x, %[[ONES]]
// CHECK-NEXT:    glow_high.concat %x, %ones
glow_high.constant @flat : tensor<2xf32> {value = dense<[2.0, 4.0]> : tensor<2xf32>}
glow_high.constant @tall : tensor<2x1xf32> {value = dense<[[2.0], [4.0]]> : tensor<2x1xf32>}
glow_high.constant @ones : tensor<2xf32> {value = dense<1.0> : tensor<2xf32>}
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.placeholder @a : tensor<2xf32> {output}
glow_high.placeholder @b : tensor<2x2xf32> {output}
glow_high.placeholder @c : tensor<2xf32> {output}
glow_high.placeholder @d : tensor<4xf32> {output}
glow_high.func @apart(@x, @a, @b, @c, @d) {
  %flat = glow_high.get @flat : tensor<2xf32>
  %tall = glow_high.get @tall : tensor<2x1xf32>
  %ones = glow_high.get @ones : tensor<2xf32>
  %x = glow_high.get @x : tensor<2xf32>
  %1 = glow_high.sub %flat, %x : tensor<2xf32>
  %2 = glow_high.sub %x, %tall : tensor<2x2xf32>
  %3 = glow_high.add %ones, %x : tensor<2xf32>
  %4 = glow_high.concat %x, %ones {axis = 0} : tensor<4xf32>
  glow_high.save %1, @a
  glow_high.save %2, @b
  glow_high.save %3, @c
  glow_high.save %4, @d
}

// -----

// 0 and -0 are not one number: 1 / x is infinite with either sign. All of one sign are a splat, with that sign.

// CHECK-LABEL: glow_high.func @signs(
// CHECK:         %[[MIXED:.*]] = glow_high.get @mixed
// CHECK:         %[[NEGATIVE:.*]] = glow_high.splat {value = -0.0} : tensor<2xf32>
// CHECK:         glow_high.div %x, %[[MIXED]]
// CHECK-NEXT:    glow_high.div %x, %[[NEGATIVE]]
glow_high.constant @mixed : tensor<2xf32> {value = dense<[0.0, -0.0]> : tensor<2xf32>}
glow_high.constant @negative : tensor<2xf32> {value = dense<[-0.0, -0.0]> : tensor<2xf32>}
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.placeholder @a : tensor<2xf32> {output}
glow_high.placeholder @b : tensor<2xf32> {output}
glow_high.func @signs(@x, @a, @b) {
  %x = glow_high.get @x : tensor<2xf32>
  %mixed = glow_high.get @mixed : tensor<2xf32>
  %negative = glow_high.get @negative : tensor<2xf32>
  %1 = glow_high.div %x, %mixed : tensor<2xf32>
  %2 = glow_high.div %x, %negative : tensor<2xf32>
  glow_high.save %1, @a
  glow_high.save %2, @b
}
