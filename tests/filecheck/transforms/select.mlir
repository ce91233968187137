// Every instruction names its kernel; what no kernel executes is left as it is.

// RUN: glow-opt %s -p select | filecheck %s
// RUN: glow-opt %s -p 'select{backend=cpu target=host}' | filecheck %s
// RUN: glow-opt %s -p select,select | filecheck %s
// RUN: glow-opt %s -p 'select{backend=interpreter}' | filecheck %s --check-prefix=INTERPRETER
// RUN: not glow-opt %s -p 'select{backend=no-such-backend}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not glow-opt %s -p 'select{target=no-such-machine}' 2>&1 | filecheck %s --check-prefix=MACHINE

glow_high.constant @matrix : tensor<4x4xf32> {value = dense<1.0> : tensor<4x4xf32>}
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @rows : tensor<2x4xf32> {input}
glow_high.placeholder @product : tensor<2x4xf32> {output}

// CHECK-LABEL: glow_low.func @main(
// CHECK:         glow_low.splat {{.*}}kernel = "fill"
// CHECK:         glow_low.stack {{.*}}kernel = "stack"
// CHECK:         glow_low.copy {{.*}}kernel = "copy"
// CHECK:         glow_low.matmul @out %product, @in %rows, @in %{{.*}}kernel = "matmul"{{.*}}array<i64: 4, 4>
// CHECK:         glow_low.dealloc
// CHECK-NOT:     kernel
// CHECK:         glow_low.hardmax
// CHECK-NOT:     kernel

// INTERPRETER-NOT: kernel
glow_low.func @main(@x, @y, @rows, @product) {
  %x = glow_low.weight @x : memref<4xf32>
  %rows = glow_low.weight @rows : memref<2x4xf32>
  %matrix = glow_low.weight @matrix : memref<4x4xf32>
  %product = glow_low.weight @product {mutable} : memref<2x4xf32>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  %0 = glow_low.alloc : memref<4xf32>
  %1 = glow_low.alloc : memref<4xf32>
  glow_low.splat @out %0 {value = 1.0, shape = [4]}
  glow_low.stack @out %1, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"]} {
  ^bb0(%2: f32):
    glow_low.yield %2 : f32
  }
  glow_low.copy @out %y, @in %1
  glow_low.matmul @out %product, @in %rows, @in %matrix
  glow_low.dealloc @out %0
  glow_low.hardmax @out %y, @in %1
  glow_low.dealloc @out %1
}

// UNKNOWN: glow-opt: error: no backend 'no-such-backend'
// MACHINE: error: {{.*}}'no-such-machine'
