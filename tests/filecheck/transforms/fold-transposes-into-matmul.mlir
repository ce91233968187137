// A matrix product reads its right operand transposed instead of having it transposed.

// RUN: glow-opt %s -p fold-transposes-into-matmul --split-input-file | filecheck %s
// RUN: glow-opt %s -p fold-transposes-into-matmul,fold-transposes-into-matmul --split-input-file | filecheck %s
// RUN: glow-opt %s -p fold-transposes-into-matmul --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// An exchange of the last two axes becomes the flag, also where the transpose has other uses, or takes the flag away.

// CHECK-LABEL: glow_high.func @exchange(
// CHECK-NEXT:    %[[A:.*]] = glow_high.matmul %x, %w {transpose_right = true} : tensor<2x4x5xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.matmul %[[A]], %w : tensor<2x4x3xf32>
// CHECK-NEXT:    glow_high.return %[[A]], %[[B]]

// LOCATIONS: glow_high.matmul %x, %w {transpose_right = true} {{.*}} loc(fused["turn", "first"])
// LOCATIONS: glow_high.matmul {{.*}} loc(fused["turn", "second"])
glow_high.func @exchange(%x: tensor<2x4x3xf32>, %w: tensor<5x3xf32>) -> (tensor<2x4x5xf32>, tensor<2x4x3xf32>) {
  %1 = glow_high.transpose %w {permutation = [1, 0]} : tensor<3x5xf32> loc("turn")
  %2 = glow_high.matmul %x, %1 : tensor<2x4x5xf32> loc("first")
  %3 = glow_high.matmul %2, %1 {transpose_right = true} : tensor<2x4x3xf32> loc("second")
  glow_high.return %2, %3
}

// -----

// Attention: what is left of the transpose moves whole rows. The bias stays.

// CHECK-LABEL: glow_high.func @attention(
// CHECK:         %[[K:.*]] = glow_high.transpose %k {permutation = [0, 2, 1, 3]} : tensor<1x4x9x16xf32>
// CHECK-NEXT:    glow_high.matmul %q, %[[K]], %bias {transpose_right = true} : tensor<1x4x8x9xf32>

// LOCATIONS: glow_high.transpose %k {{.*}} loc("turn")
// LOCATIONS: glow_high.matmul %q, {{.*}} loc(fused["turn", "scores"])
glow_high.func @attention(%q: tensor<1x4x8x16xf32>, %k: tensor<1x9x4x16xf32>, %bias: tensor<9xf32>) -> tensor<1x4x8x9xf32> {
  %1 = glow_high.transpose %k {permutation = [0, 2, 3, 1]} : tensor<1x4x16x9xf32> loc("turn")
  %2 = glow_high.matmul %q, %1, %bias : tensor<1x4x8x9xf32> loc("scores")
  glow_high.return %2
}

// -----

// A fully connected layer whose weights are no constant is a product with a bias.

// CHECK-LABEL: glow_high.func @layer(
// CHECK:         glow_high.matmul %x, %w, %b {transpose_right = true} : tensor<4x5xf32>
glow_high.placeholder @x : tensor<4x3xf32> {input}
glow_high.placeholder @w : tensor<5x3xf32> {state}
glow_high.placeholder @b : tensor<5xf32> {state}
glow_high.placeholder @y : tensor<4x5xf32> {output}
glow_high.func @layer(@x, @w, @b, @y) {
  %x = glow_high.get @x : tensor<4x3xf32>
  %w = glow_high.get @w {mutable} : tensor<5x3xf32>
  %b = glow_high.get @b {mutable} : tensor<5xf32>
  %1 = glow_high.transpose %w {permutation = [1, 0]} : tensor<3x5xf32>
  %2 = glow_high.fully_connected %x, %1, %b : tensor<4x5xf32>
  glow_high.save %2, @y
}

// -----

// Nothing happens to the left operand, to one whose rows stay whole, to a constant, to integers, and to a transpose of
// which a part would be left while something else needs all of it.

// CHECK-LABEL: glow_high.func @stay(
// CHECK:         %[[LEFT:.*]] = glow_high.transpose %x {permutation = [0, 1, 3, 2]}
// CHECK-NEXT:    glow_high.matmul %[[LEFT]], %x : tensor<2x3x5x5xf32>
// CHECK-NEXT:    %[[ROWS:.*]] = glow_high.transpose %x {permutation = [1, 0, 2, 3]}
// CHECK-NEXT:    glow_high.matmul %{{.*}}, %[[ROWS]] : tensor<3x2x5x5xf32>
// CHECK-NEXT:    %[[CONSTANT:.*]] = glow_high.transpose %c {permutation = [1, 0]}
// CHECK-NEXT:    glow_high.matmul %x, %[[CONSTANT]] : tensor<2x3x4x2xf32>
// CHECK-NEXT:    %[[INTEGERS:.*]] = glow_high.transpose %i {permutation = [1, 0]}
// CHECK-NEXT:    glow_high.matmul %i, %[[INTEGERS]] : tensor<3x3xi32>
// CHECK-NEXT:    %[[ALL:.*]] = glow_high.transpose %x {permutation = [1, 0, 3, 2]}
// CHECK-NEXT:    glow_high.matmul %{{.*}}, %[[ALL]] : tensor<3x2x4x4xf32>
glow_high.constant @c : tensor<2x5xf32> {value = dense<1.0> : tensor<2x5xf32>}
glow_high.func @stay(%x: tensor<2x3x4x5xf32>, %i: tensor<3x4xi32>) -> (tensor<2x3x5x5xf32>, tensor<3x2x5x5xf32>, tensor<2x3x4x2xf32>, tensor<3x3xi32>, tensor<3x2x4x4xf32>, tensor<3x2x5x4xf32>) {
  %c = glow_high.get @c : tensor<2x5xf32>
  %wide = glow_high.splat {value = 1.0} : tensor<3x2x5x4xf32>
  %tall = glow_high.splat {value = 1.0} : tensor<3x2x4x5xf32>
  %1 = glow_high.transpose %x {permutation = [0, 1, 3, 2]} : tensor<2x3x5x4xf32>
  %2 = glow_high.matmul %1, %x : tensor<2x3x5x5xf32>
  %3 = glow_high.transpose %x {permutation = [1, 0, 2, 3]} : tensor<3x2x4x5xf32>
  %4 = glow_high.matmul %wide, %3 : tensor<3x2x5x5xf32>
  %5 = glow_high.transpose %c {permutation = [1, 0]} : tensor<5x2xf32>
  %6 = glow_high.matmul %x, %5 : tensor<2x3x4x2xf32>
  %7 = glow_high.transpose %i {permutation = [1, 0]} : tensor<4x3xi32>
  %8 = glow_high.matmul %i, %7 : tensor<3x3xi32>
  %9 = glow_high.transpose %x {permutation = [1, 0, 3, 2]} : tensor<3x2x5x4xf32>
  %10 = glow_high.matmul %tall, %9 : tensor<3x2x4x4xf32>
  glow_high.return %2, %4, %6, %8, %10, %9
}

// -----

// A flattened image before constant weights: their rows are permuted. Where rows of the image mix, nothing changes.

// CHECK-LABEL: glow_high.func @flatten(
// CHECK:         %[[R:.*]] = glow_high.reshape %x {shape = [2, 4]}
// CHECK-NEXT:    %[[W:.*]] = glow_high.get @[[NAME:.*]] : tensor<4x1xf32>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.matmul %[[R]], %[[W]] : tensor<2x1xf32>
// CHECK-NEXT:    glow_high.save %[[Y]], @y
// CHECK-NEXT:    %[[T:.*]] = glow_high.transpose %x {permutation = [3, 1, 2, 0]}
// CHECK-NEXT:    %[[S:.*]] = glow_high.reshape %[[T]] {shape = [2, 4]}
// CHECK-NEXT:    glow_high.matmul %[[S]], %w

// LOCATIONS: {value = dense<{{.*}}1.000000e+00], [3.000000e+00], [2.000000e+00], [4.000000e+00]]>
// LOCATIONS: glow_high.reshape %x {{.*}} loc(fused["turn", "flatten"])
// LOCATIONS: glow_high.matmul {{.*}} loc(fused["turn", "product"])
glow_high.constant @w : tensor<4x1xf32> {value = dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>}
glow_high.placeholder @x : tensor<2x1x2x2xf32> {input}
glow_high.placeholder @y : tensor<2x1xf32> {output}
glow_high.placeholder @z : tensor<2x1xf32> {output}
glow_high.func @flatten(@x, @y, @z) {
  %x = glow_high.get @x : tensor<2x1x2x2xf32>
  %w = glow_high.get @w : tensor<4x1xf32>
  %1 = glow_high.transpose %x {permutation = [0, 3, 1, 2]} : tensor<2x2x1x2xf32> loc("turn")
  %2 = glow_high.reshape %1 {shape = [2, 4]} : tensor<2x4xf32> loc("flatten")
  %3 = glow_high.matmul %2, %w : tensor<2x1xf32> loc("product")
  glow_high.save %3, @y
  %4 = glow_high.transpose %x {permutation = [3, 1, 2, 0]} : tensor<2x1x2x2xf32>
  %5 = glow_high.reshape %4 {shape = [2, 4]} : tensor<2x4xf32>
  %6 = glow_high.matmul %5, %w : tensor<2x1xf32>
  glow_high.save %6, @z
}

// -----

// A transpose behind a product that reads one factor transposed exchanges the factors, through axes of size one too.

// CHECK-LABEL: glow_high.func @exchange_factors(
// CHECK-NEXT:    %[[A:.*]] = glow_high.matmul %y, %x {transpose_left = true} : tensor<5x3xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.reshape %[[A]] {shape = [1, 5, 3]} : tensor<1x5x3xf32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.matmul %z, %x {transpose_right = true} : tensor<4x4xf32>
// CHECK-NEXT:    glow_high.return %[[B]], %[[C]]

// LOCATIONS: glow_high.matmul %y, %x {transpose_left = true} {{.*}} loc(fused["product", "turn"])
glow_high.func @exchange_factors(%x: tensor<4x3xf32>, %y: tensor<4x5xf32>, %z: tensor<4x3xf32>) -> (tensor<1x5x3xf32>, tensor<4x4xf32>) {
  %1 = glow_high.matmul %x, %y {transpose_left = true} : tensor<3x5xf32> loc("product")
  %2 = glow_high.reshape %1 {shape = [1, 3, 5]} : tensor<1x3x5xf32>
  %3 = glow_high.transpose %2 {permutation = [0, 2, 1]} : tensor<1x5x3xf32> loc("turn")
  %4 = glow_high.matmul %x, %z {transpose_right = true} : tensor<4x4xf32>
  %5 = glow_high.transpose %4 {permutation = [1, 0]} : tensor<4x4xf32>
  glow_high.return %3, %5
}

// -----

// A transpose in front of the left factor counts as well, and is left out, where the right factor has fewer elements than
// the result and the left one.

// CHECK-LABEL: glow_high.func @exchange_transposed_left(
// CHECK-NEXT:    %[[A:.*]] = glow_high.matmul %y, %x {transpose_left = true} : tensor<9x8xf32>
// CHECK-NEXT:    %[[T:.*]] = glow_high.transpose %z
// CHECK-NEXT:    %[[B:.*]] = glow_high.matmul %[[T]], %y
// CHECK-NEXT:    %[[C:.*]] = glow_high.transpose %[[B]]
// CHECK-NEXT:    glow_high.return %[[A]], %[[C]]
glow_high.func @exchange_transposed_left(%x: tensor<4x8xf32>, %y: tensor<4x9xf32>, %z: tensor<4x2xf32>) -> (tensor<9x8xf32>, tensor<9x2xf32>) {
  %1 = glow_high.transpose %x {permutation = [1, 0]} : tensor<8x4xf32>
  %2 = glow_high.matmul %1, %y : tensor<8x9xf32>
  %3 = glow_high.transpose %2 {permutation = [1, 0]} : tensor<9x8xf32>
  %4 = glow_high.transpose %z {permutation = [1, 0]} : tensor<2x4xf32>
  %5 = glow_high.matmul %4, %y : tensor<2x9xf32>
  %6 = glow_high.transpose %5 {permutation = [1, 0]} : tensor<9x2xf32>
  glow_high.return %3, %6
}

// -----

// Not where both factors are read as they are, where the right one is a constant, where the product is needed itself,
// and where there is a bias.

// CHECK-LABEL: glow_high.func @keep_factors(
// CHECK-COUNT-4: glow_high.transpose
glow_high.constant @c : tensor<5x3xf32> {value = dense<1.0> : tensor<5x3xf32>}
glow_high.func @keep_factors(%x: tensor<4x3xf32>, %y: tensor<3x4xf32>, %b: tensor<4xf32>) -> (tensor<4x4xf32>, tensor<5x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %c = glow_high.get @c : tensor<5x3xf32>
  %1 = glow_high.matmul %x, %y : tensor<4x4xf32>
  %2 = glow_high.transpose %1 {permutation = [1, 0]} : tensor<4x4xf32>
  %3 = glow_high.matmul %x, %c {transpose_right = true} : tensor<4x5xf32>
  %4 = glow_high.transpose %3 {permutation = [1, 0]} : tensor<5x4xf32>
  %5 = glow_high.matmul %x, %x {transpose_right = true} : tensor<4x4xf32>
  %6 = glow_high.transpose %5 {permutation = [1, 0]} : tensor<4x4xf32>
  %7 = glow_high.matmul %x, %x, %b {transpose_right = true} : tensor<4x4xf32>
  %8 = glow_high.transpose %7 {permutation = [1, 0]} : tensor<4x4xf32>
  glow_high.return %2, %4, %5, %6, %8
}
