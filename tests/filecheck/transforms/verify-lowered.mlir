// One error lists everything that the backend does not execute, by name or else by place.

// RUN: not glow-opt %s -p 'assign-target{target=avx2},verify-lowered' 2>&1 | filecheck %s
// RUN: not glow-opt %s -p 'assign-target{target=avx2},verify-lowered' -o %t.mlir 2>&1 | filecheck %s
// RUN: not ls %t.mlir
// RUN: glow-opt %s -p 'assign-target{target=avx2},lower,verify-lowered' | filecheck %s --check-prefix=LOWERED
// RUN: glow-opt %s -p 'assign-target{backend=interpreter},verify-lowered' | filecheck %s --check-prefix=INTERPRETER

// CHECK-NOT: Traceback
// CHECK: verify-lowered.mlir:{{[0-9]+}}:3: error: 2 operators are not supported by the backend 'cpu': glow_high.batch_normalization : tensor<1x3x2xf32> ('norm'), glow_high.batch_normalization : tensor<1x3x2xf32> ('{{.*}}verify-lowered.mlir:{{[0-9]+}}:3')
// CHECK-NOT: relu

// LOWERED: glow_high.func @main(
// INTERPRETER: glow_high.batch_normalization

glow_high.func @main(%s: tensor<2xf32>, %x: tensor<1x3x2xf32>) -> tensor<1x3x2xf32> {
  %1 = glow_high.batch_normalization %x, %s, %s, %s, %s : tensor<1x3x2xf32> loc("norm")
  %2 = glow_high.batch_normalization %1, %s, %s, %s, %s : tensor<1x3x2xf32>
  %3 = glow_high.relu %2 : tensor<1x3x2xf32> loc("relu")
  glow_high.return %3
}
