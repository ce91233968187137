// One error lists every instruction without a kernel.

// RUN: not glow-opt %s -p 'assign-target{target=avx2},verify-selected' 2>&1 | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},eliminate-copies,stack,select,verify-selected' | filecheck %s --check-prefix=SELECTED

// CHECK-NOT: Traceback
// CHECK: verify-selected.mlir:{{[0-9]+}}:3: error: 2 operators are not supported by kernel selection: glow_low.relu ('activation'), glow_low.copy ('{{.*}}verify-selected.mlir:{{[0-9]+}}:3')
// CHECK-NOT: dealloc

// SELECTED: glow_low.stack @out %y, @in %x {{.*}}kernel = "stack"
glow_low.func @main(@in %x: memref<4xf32>, @out %y: memref<4xf32>) {
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.relu @out %0, @in %x loc("activation")
  glow_low.copy @out %y, @in %0
  glow_low.dealloc @out %0
}
