// Two matrix products with a softmax between them become an attention.

// RUN: glow-opt %s -p recognize-attention --split-input-file | filecheck %s
// RUN: glow-opt %s -p recognize-attention --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// With a scale and a mask, with neither, and with two addends.

// CHECK-LABEL: glow_high.func @attention(
// CHECK:         %[[A:.*]] = glow_high.attention %q, %k, %v, %m {scale = 0.5} : tensor<2x3x5xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.attention %q, %k, %v : tensor<2x3x5xf32>
// CHECK-NEXT:    %[[SUM:.*]] = glow_high.add %m, %n : tensor<3x4xf32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.attention %q, %k, %v, %[[SUM]] : tensor<2x3x5xf32>
// CHECK-NEXT:    glow_high.return %[[A]], %[[B]], %[[C]]

// LOCATIONS: glow_high.attention {{.*}} loc(fused[{{.*}}"scores"{{.*}}"softmax"{{.*}}"means"])
glow_high.func @attention(%q: tensor<2x3x8xf32>, %k: tensor<2x4x8xf32>, %v: tensor<2x4x5xf32>, %m: tensor<4xf32>, %n: tensor<3x4xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>) {
  %two = glow_high.splat {value = 2.0} : tensor<f32>
  %1 = glow_high.matmul %q, %k {transpose_right = true} : tensor<2x3x4xf32> loc("scores")
  %2 = glow_high.div %1, %two : tensor<2x3x4xf32>
  %3 = glow_high.add %m, %2 : tensor<2x3x4xf32>
  %4 = glow_high.softmax %3 : tensor<2x3x4xf32> loc("softmax")
  %5 = glow_high.matmul %4, %v : tensor<2x3x5xf32> loc("means")
  %6 = glow_high.matmul %q, %k {transpose_right = true} : tensor<2x3x4xf32>
  %7 = glow_high.softmax %6 {axis = 2} : tensor<2x3x4xf32>
  %8 = glow_high.matmul %7, %v : tensor<2x3x5xf32>
  %9 = glow_high.matmul %q, %k {transpose_right = true} : tensor<2x3x4xf32>
  %10 = glow_high.add %9, %m : tensor<2x3x4xf32>
  %11 = glow_high.add %10, %n : tensor<2x3x4xf32>
  %12 = glow_high.softmax %11 : tensor<2x3x4xf32>
  %13 = glow_high.matmul %12, %v : tensor<2x3x5xf32>
  glow_high.return %5, %8, %13
}

// -----

// Keys that are columns already are transposed.

// CHECK-LABEL: glow_high.func @columns(
// CHECK:         %[[KEYS:.*]] = glow_high.transpose %k {permutation = [0, 2, 1]} : tensor<2x4x8xf32>
// CHECK-NEXT:    glow_high.attention %q, %[[KEYS]], %v : tensor<2x3x5xf32>
glow_high.func @columns(%q: tensor<2x3x8xf32>, %k: tensor<2x8x4xf32>, %v: tensor<2x4x5xf32>) -> tensor<2x3x5xf32> {
  %1 = glow_high.matmul %q, %k : tensor<2x3x4xf32>
  %2 = glow_high.softmax %1 : tensor<2x3x4xf32>
  %3 = glow_high.matmul %2, %v : tensor<2x3x5xf32>
  glow_high.return %3
}

// -----

// Masks that hide the keys behind each query: an addend, and a choice between scores and a number, with a key before
// the first query; one that may hide anything.

// CHECK-LABEL: glow_high.func @causal(
// CHECK:         %[[A:.*]] = glow_high.attention %q, %k, %v {causal = true} : tensor<2x2xf32>
// CHECK:         %[[B:.*]] = glow_high.attention %q, %k3, %v3 {scale = 0.5, causal = true, past = 1} : tensor<2x2xf32>
// CHECK:         %[[HIDDEN:.*]] = glow_high.where %c, %{{.*}}, %{{.*}} : tensor<2x2xf32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.attention %q, %k, %v, %[[HIDDEN]] : tensor<2x2xf32>
glow_high.constant @mask : tensor<2x2xf32> {value = dense<[[0.0, -3.0e+38], [0.0, 0.0]]> : tensor<2x2xf32>}
glow_high.constant @seen : tensor<2x3xi1> {value = dense<[[true, true, false], [true, true, true]]> : tensor<2x3xi1>}
glow_high.func @causal(%q: tensor<2x8xf32>, %k: tensor<2x8xf32>, %v: tensor<2x2xf32>, %k3: tensor<3x8xf32>, %v3: tensor<3x2xf32>, %c: tensor<2x2xi1>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %mask = glow_high.get @mask : tensor<2x2xf32>
  %seen = glow_high.get @seen : tensor<2x3xi1>
  %half = glow_high.splat {value = 0.5} : tensor<f32>
  %least = glow_high.splat {value = -3.0e+38} : tensor<f32>
  %1 = glow_high.matmul %q, %k {transpose_right = true} : tensor<2x2xf32>
  %2 = glow_high.add %1, %mask : tensor<2x2xf32>
  %3 = glow_high.softmax %2 : tensor<2x2xf32>
  %4 = glow_high.matmul %3, %v : tensor<2x2xf32>
  %5 = glow_high.matmul %q, %k3 {transpose_right = true} : tensor<2x3xf32>
  %6 = glow_high.mul %5, %half : tensor<2x3xf32>
  %7 = glow_high.where %seen, %6, %least : tensor<2x3xf32>
  %8 = glow_high.softmax %7 : tensor<2x3xf32>
  %9 = glow_high.matmul %8, %v3 : tensor<2x2xf32>
  %10 = glow_high.matmul %q, %k {transpose_right = true} : tensor<2x2xf32>
  %11 = glow_high.where %c, %10, %least : tensor<2x2xf32>
  %12 = glow_high.softmax %11 : tensor<2x2xf32>
  %13 = glow_high.matmul %12, %v : tensor<2x2xf32>
  glow_high.return %4, %9, %13
}

// -----

// Not: a softmax along the columns, scores that something else reads, a mask that gives the result more axes, and a
// number that hides no key for certain.

// CHECK-LABEL: glow_high.func @others(
// CHECK-NOT:     glow_high.attention
glow_high.func @others(%q: tensor<4x8xf32>, %k: tensor<4x8xf32>, %v: tensor<4x5xf32>, %m: tensor<2x1x1xf32>, %n: tensor<4x4xi1>) -> (tensor<4x5xf32>, tensor<4x5xf32>, tensor<2x4x5xf32>, tensor<4x5xf32>, tensor<4x4xf32>) {
  %little = glow_high.splat {value = -10.0} : tensor<f32>
  %1 = glow_high.matmul %q, %k {transpose_right = true} : tensor<4x4xf32>
  %2 = glow_high.softmax %1 {axis = 0} : tensor<4x4xf32>
  %3 = glow_high.matmul %2, %v : tensor<4x5xf32>
  %4 = glow_high.matmul %q, %k {transpose_right = true} : tensor<4x4xf32>
  %5 = glow_high.softmax %4 : tensor<4x4xf32>
  %6 = glow_high.matmul %5, %v : tensor<4x5xf32>
  %7 = glow_high.matmul %q, %k {transpose_right = true} : tensor<4x4xf32>
  %8 = glow_high.add %7, %m : tensor<2x4x4xf32>
  %9 = glow_high.softmax %8 : tensor<2x4x4xf32>
  %10 = glow_high.matmul %9, %v : tensor<2x4x5xf32>
  %11 = glow_high.matmul %q, %k {transpose_right = true} : tensor<4x4xf32>
  %12 = glow_high.where %n, %11, %little : tensor<4x4xf32>
  %13 = glow_high.softmax %12 : tensor<4x4xf32>
  %14 = glow_high.matmul %13, %v : tensor<4x5xf32>
  glow_high.return %3, %6, %10, %14, %4
}

// -----

// A causal mask of finite numbers beside another one stays a mask: in rows whose seen keys that one hides, it counts.

// CHECK-LABEL: glow_high.func @padded_on_the_left(
// CHECK:         %[[SUM:.*]] = glow_high.add %{{.*}}, %{{.*}} : tensor<3x3xf32>
// CHECK-NEXT:    glow_high.attention %q, %k, %v, %[[SUM]] : tensor<2x3x5xf32>
glow_high.constant @far : tensor<3x3xf32> {value = dense<[[0.0, -3.0e38, -3.0e38], [0.0, 0.0, -3.0e38], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>}
glow_high.func @padded_on_the_left(%q: tensor<2x3x8xf32>, %k: tensor<2x3x8xf32>, %v: tensor<2x3x5xf32>, %m: tensor<3xf32>) -> tensor<2x3x5xf32> {
  %far = glow_high.get @far : tensor<3x3xf32>
  %0 = glow_high.matmul %q, %k {transpose_right = true} : tensor<2x3x3xf32>
  %1 = glow_high.add %0, %far : tensor<2x3x3xf32>
  %2 = glow_high.add %1, %m : tensor<2x3x3xf32>
  %3 = glow_high.softmax %2 : tensor<2x3x3xf32>
  %4 = glow_high.matmul %3, %v : tensor<2x3x5xf32>
  glow_high.return %4
}
