// Products of one matrix with several narrow constant ones are one product, and of several rows with one matrix.

// RUN: glow-opt %s -p merge-matmuls --split-input-file | filecheck %s
// RUN: glow-opt %s -p merge-matmuls --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS
// RUN: glow-opt %s -p 'merge-matmuls{panel=0}' --split-input-file | filecheck %s --check-prefix=ALL

// A product without bias gets zeros where another one has one.

// CHECK-LABEL: glow_high.func @narrow(
// CHECK:         %[[BIAS:.*]] = glow_high.get @{{.*}} : tensor<5xf32>
// CHECK-NEXT:    %[[WEIGHTS:.*]] = glow_high.get @{{.*}} : tensor<2x5xf32>
// CHECK-NEXT:    %[[BOTH:.*]] = glow_high.matmul %x, %[[WEIGHTS]], %[[BIAS]] : tensor<4x3x5xf32>
// CHECK-NEXT:    %[[FIRST:.*]] = glow_high.slice %[[BOTH]] {starts = [0, 0, 0], ends = [4, 3, 2]
// CHECK-NEXT:    %[[SECOND:.*]] = glow_high.slice %[[BOTH]] {starts = [0, 0, 2], ends = [4, 3, 5]
// CHECK-NEXT:    glow_high.save %[[FIRST]], @y
// CHECK-NEXT:    glow_high.save %[[SECOND]], @z

// LOCATIONS: glow_high.matmul {{.*}} loc(fused["first", "second"])
// LOCATIONS: glow_high.slice {{.*}} loc("first")
// LOCATIONS: glow_high.slice {{.*}} loc("second")
glow_high.constant @a : tensor<2x2xf32> {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}
glow_high.constant @b : tensor<2x3xf32> {value = dense<[[1.0, 2.0, 5.0], [3.0, 4.0, 6.0]]> : tensor<2x3xf32>}
glow_high.constant @bias : tensor<3xf32> {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>}
glow_high.placeholder @x : tensor<4x3x2xf32> {input}
glow_high.placeholder @y : tensor<4x3x2xf32> {output}
glow_high.placeholder @z : tensor<4x3x3xf32> {output}
glow_high.func @narrow(@x, @y, @z) {
  %x = glow_high.get @x : tensor<4x3x2xf32>
  %a = glow_high.get @a : tensor<2x2xf32>
  %b = glow_high.get @b : tensor<2x3xf32>
  %bias = glow_high.get @bias : tensor<3xf32>
  %1 = glow_high.matmul %x, %a : tensor<4x3x2xf32> loc("first")
  glow_high.save %1, @y
  %2 = glow_high.matmul %x, %b, %bias : tensor<4x3x3xf32> loc("second")
  glow_high.save %2, @z
}

// -----

// Matrices that fill panels alone stay alone, unless asked for.

// CHECK-LABEL: glow_high.func @wide(
// CHECK:         glow_high.matmul %x, %a
// CHECK:         glow_high.matmul %x, %b

// ALL-LABEL: glow_high.func @wide(
// ALL:         glow_high.matmul %x, %{{.*}} : tensor<4x32xf32>
// ALL-NEXT:    glow_high.slice
// ALL-NEXT:    glow_high.slice
glow_high.constant @a : tensor<1x16xf32> {value = dense<1.0> : tensor<1x16xf32>}
glow_high.constant @b : tensor<1x16xf32> {value = dense<2.0> : tensor<1x16xf32>}
glow_high.func @wide(%x: tensor<4x1xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %a = glow_high.get @a : tensor<1x16xf32>
  %b = glow_high.get @b : tensor<1x16xf32>
  %1 = glow_high.matmul %x, %a : tensor<4x16xf32>
  %2 = glow_high.matmul %x, %b : tensor<4x16xf32>
  glow_high.return %1, %2
}

// -----

// Other left operands, variable matrices and transposed ones do not merge.

// CHECK-LABEL: glow_high.func @different(
// CHECK:         glow_high.matmul %x, %a :
// CHECK-NEXT:    glow_high.matmul %v, %a :
// CHECK-NEXT:    glow_high.matmul %x, %v :
// CHECK-NEXT:    glow_high.matmul %x, %a {transpose_right = true}
glow_high.constant @a : tensor<2x2xf32> {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}
glow_high.func @different(%x: tensor<2x2xf32>, %v: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %a = glow_high.get @a : tensor<2x2xf32>
  %1 = glow_high.matmul %x, %a : tensor<2x2xf32>
  %2 = glow_high.matmul %v, %a : tensor<2x2xf32>
  %3 = glow_high.matmul %x, %v : tensor<2x2xf32>
  %4 = glow_high.matmul %x, %a {transpose_right = true} : tensor<2x2xf32>
  glow_high.return %1, %2, %3, %4
}

// -----

// Rows that are multiplied by one matrix are the rows of one product, in front of the first use.

// CHECK-LABEL: glow_high.func @rows(
// CHECK:         %[[A:.*]] = glow_high.relu %x
// CHECK-NEXT:    %[[ROWS:.*]] = glow_high.concat %x, %[[A]] {axis = 0} : tensor<2x2xf32>
// CHECK-NEXT:    %[[BOTH:.*]] = glow_high.matmul %[[ROWS]], %w, %bias : tensor<2x3xf32>
// CHECK-NEXT:    %[[FIRST:.*]] = glow_high.slice %[[BOTH]] {starts = [0, 0], ends = [1, 3]}
// CHECK-NEXT:    %[[SECOND:.*]] = glow_high.slice %[[BOTH]] {starts = [1, 0], ends = [2, 3]}
// CHECK-NEXT:    glow_high.return %[[FIRST]], %[[SECOND]]

// LOCATIONS: glow_high.matmul {{.*}} loc(fused["first", "second"])
glow_high.constant @w : tensor<2x3xf32> {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>}
glow_high.constant @bias : tensor<3xf32> {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>}
glow_high.func @rows(%x: tensor<1x2xf32>) -> (tensor<1x3xf32>, tensor<1x3xf32>) {
  %w = glow_high.get @w : tensor<2x3xf32>
  %bias = glow_high.get @bias : tensor<3xf32>
  %1 = glow_high.matmul %x, %w, %bias : tensor<1x3xf32> loc("first")
  %2 = glow_high.relu %x : tensor<1x2xf32>
  %3 = glow_high.matmul %2, %w, %bias : tensor<1x3xf32> loc("second")
  glow_high.return %1, %3
}

// -----

// Rows stay apart that depend on each other's products, directly or not, that get another bias, or that are several.

// CHECK-LABEL: glow_high.func @apart(
// CHECK-COUNT-6: glow_high.matmul %{{.*}}, %w
// CHECK-NOT:     glow_high.matmul
glow_high.constant @w : tensor<2x2xf32> {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}
glow_high.constant @bias : tensor<2xf32> {value = dense<[1.0, 2.0]> : tensor<2xf32>}
glow_high.placeholder @x : tensor<1x2xf32> {input}
glow_high.placeholder @v : tensor<2x2xf32> {input}
glow_high.placeholder @a : tensor<1x2xf32> {output}
glow_high.placeholder @b : tensor<1x2xf32> {output}
glow_high.placeholder @c : tensor<2x2xf32> {output}
glow_high.placeholder @d : tensor<2x2xf32> {output}
glow_high.func @apart(@x, @v, @a, @b, @c, @d) {
  %x = glow_high.get @x : tensor<1x2xf32>
  %v = glow_high.get @v : tensor<2x2xf32>
  %w = glow_high.get @w : tensor<2x2xf32>
  %bias = glow_high.get @bias : tensor<2xf32>
  %1 = glow_high.matmul %x, %w : tensor<1x2xf32>
  %2 = glow_high.matmul %1, %w : tensor<1x2xf32>
  %3 = glow_high.relu %2 : tensor<1x2xf32>
  %4 = glow_high.matmul %3, %w : tensor<1x2xf32>
  glow_high.save %4, @a
  %n = glow_high.neg %3 : tensor<1x2xf32>
  %5 = glow_high.matmul %n, %w, %bias : tensor<1x2xf32>
  glow_high.save %5, @b
  %6 = glow_high.matmul %v, %w : tensor<2x2xf32>
  glow_high.save %6, @c
  %7 = glow_high.relu %v : tensor<2x2xf32>
  %8 = glow_high.matmul %7, %w : tensor<2x2xf32>
  glow_high.save %8, @d
}
