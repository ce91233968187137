// Matrix products, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

glow_high.placeholder @a : tensor<5x2x3xf32> {input}
glow_high.placeholder @b : tensor<3x4xf32> {input}
glow_high.placeholder @bt : tensor<5x4x3xf32> {input}
glow_high.placeholder @m : tensor<2x3xf32> {input}
glow_high.placeholder @bias : tensor<4xf32> {input}
glow_high.placeholder @n : tensor<3x4xi32> {input}
glow_high.placeholder @k : tensor<2x3xi32> {input}

// CHECK-LABEL: glow_high.func @matmul(@a, @b, @bt, @bias, @n, @k)
glow_high.func @matmul(@a, @b, @bt, @bias, @n, @k) {
  // CHECK-NEXT: %a = glow_high.get @a : tensor<5x2x3xf32>
  %a = glow_high.get @a : tensor<5x2x3xf32>
  // CHECK-NEXT: %b = glow_high.get @b : tensor<3x4xf32>
  %b = glow_high.get @b : tensor<3x4xf32>
  // CHECK-NEXT: %bt = glow_high.get @bt : tensor<5x4x3xf32>
  %bt = glow_high.get @bt : tensor<5x4x3xf32>
  // CHECK-NEXT: %bias = glow_high.get @bias : tensor<4xf32>
  %bias = glow_high.get @bias : tensor<4xf32>
  // CHECK-NEXT: %n = glow_high.get @n : tensor<3x4xi32>
  %n = glow_high.get @n : tensor<3x4xi32>
  // CHECK-NEXT: %k = glow_high.get @k : tensor<2x3xi32>
  %k = glow_high.get @k : tensor<2x3xi32>
  // CHECK-NEXT: %matmul = glow_high.matmul %a, %b : tensor<5x2x4xf32>
  %matmul = glow_high.matmul %a, %b : tensor<5x2x4xf32>
  // CHECK-NEXT: %matmul_1 = glow_high.matmul %a, %b, %bias : tensor<5x2x4xf32>
  %matmul_1 = glow_high.matmul %a, %b, %bias : tensor<5x2x4xf32>
  // CHECK-NEXT: %matmul_2 = glow_high.matmul %a, %bt {transpose_right = true} : tensor<5x2x4xf32>
  %matmul_2 = glow_high.matmul %a, %bt {transpose_right = true} : tensor<5x2x4xf32>
  // CHECK-NEXT: %matmul_3 = glow_high.matmul %b, %a {transpose_left = true, transpose_right = true} : tensor<5x4x2xf32>
  %matmul_3 = glow_high.matmul %b, %a {transpose_left = true, transpose_right = true} : tensor<5x4x2xf32>
  // CHECK-NEXT: %matmul_4 = glow_high.matmul %k, %n : tensor<2x4xi32>
  %matmul_4 = glow_high.matmul %k, %n : tensor<2x4xi32>
}

// CHECK-LABEL: glow_high.func @fully_connected(@m, @b, @bias)
glow_high.func @fully_connected(@m, @b, @bias) {
  // CHECK-NEXT: %m = glow_high.get @m : tensor<2x3xf32>
  %m = glow_high.get @m : tensor<2x3xf32>
  // CHECK-NEXT: %b = glow_high.get @b : tensor<3x4xf32>
  %b = glow_high.get @b : tensor<3x4xf32>
  // CHECK-NEXT: %bias = glow_high.get @bias : tensor<4xf32>
  %bias = glow_high.get @bias : tensor<4xf32>
  // CHECK-NEXT: %fully_connected = glow_high.fully_connected %m, %b, %bias : tensor<2x4xf32>
  %fully_connected = glow_high.fully_connected %m, %b, %bias : tensor<2x4xf32>
}

glow_high.placeholder @square : tensor<5x4x4xf32> {input}

// CHECK-LABEL: glow_high.func @det(@square)
glow_high.func @det(@square) {
  // CHECK-NEXT: %square = glow_high.get @square : tensor<5x4x4xf32>
  %square = glow_high.get @square : tensor<5x4x4xf32>
  // CHECK-NEXT: %det = glow_high.det %square : tensor<5xf32>
  %det = glow_high.det %square : tensor<5xf32>
}
