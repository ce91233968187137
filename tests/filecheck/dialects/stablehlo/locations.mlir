// Locations as JAX writes them: ranges, names, calls, and aliases behind their use.

// RUN: glow-opt %s --print-debuginfo | filecheck %s
// RUN: glow-opt %s --print-debuginfo | glow-opt --print-debuginfo | filecheck %s
// RUN: glow-opt %s --print-debuginfo --print-op-generic | glow-opt --print-debuginfo | filecheck %s

#loc2 = loc("y")
module @jit_f {
  // CHECK: func.func @main(%arg0: tensor<2xf32> loc("x"), %arg1: tensor<2xf32> loc("y"))
  func.func @main(%arg0: tensor<2xf32> loc("x"), %arg1: tensor<2xf32> loc(#loc2)) -> tensor<2xf32> {
    // CHECK-NEXT: stablehlo.add {{.*}} loc("jit(f)/add"(callsite("f"("model.py":17:63) at "<module>"("main.py":3:1))))
    %0 = stablehlo.add %arg0, %arg1 : tensor<2xf32> loc(#loc9)
    // CHECK-NEXT: stablehlo.tanh {{.*}} loc(fused<"pass">["a", "b"("f.py":1:2)])
    %1 = stablehlo.tanh %0 : tensor<2xf32> loc(fused<"pass">["a", "b"("f.py":1:2)])
    // CHECK-NEXT: stablehlo.sine {{.*}} loc("f.py":1:2)
    %2 = stablehlo.sine %1 : tensor<2xf32> loc("f.py":1:2 to 3:4)
    // CHECK-NEXT: func.return {{.*}} loc(unknown)
    return %2 : tensor<2xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("model.py":17:63 to :78)
#loc4 = loc("main.py":3:1 to :9)
#loc9 = loc("jit(f)/add"(#loc8))
#loc5 = loc("f"(#loc3))
#loc6 = loc("<module>"(#loc4))
#loc8 = loc(callsite(#loc5 at #loc6))
