// Each trip of a loop reads whether the entry is to end, and returns then.

// RUN: glow-opt %s -p 'assign-target{target=avx2},glow-low-to-scf' | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},glow-low-to-scf{cancellable=false}' | filecheck %s --check-prefix=PLAIN

glow_high.placeholder @x : tensor<8xf32> {input}
glow_high.placeholder @y : tensor<8xf32> {output}

// CHECK-LABEL: llvm.func @repeated(
// CHECK-SAME:  %{{.*}}: !llvm.ptr, %[[BINDINGS:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK-DAG:   %[[STATUS:.*]] = llvm.mlir.constant(-2 : i32) : i32
// CHECK:       %[[PLACE:.*]] = llvm.getelementptr inbounds %[[BINDINGS]][2]
// CHECK-NEXT:  %[[WORD:.*]] = llvm.load %[[PLACE]]
// CHECK:       scf.for
// CHECK-NEXT:  %[[NUMBER:.*]] = llvm.load %[[WORD]] atomic monotonic
// CHECK-NEXT:  %[[ENDS:.*]] = llvm.icmp "ne" %[[NUMBER]], %{{.*}} : i32
// CHECK-NEXT:  glow.return_if %[[ENDS]], %[[STATUS]] : i32
// CHECK-NEXT:  llvm.call @copy

// PLAIN-LABEL: llvm.func @repeated(
// PLAIN-NOT:   atomic
glow_low.func @repeated(@x, @y) attributes {activations = 0, activations_bound = 0, constants = 0} {
  %x = glow_low.weight @x {region = "bindings", offset = 0} : memref<8xf32>
  %y = glow_low.weight @y {mutable, region = "bindings", offset = 1} : memref<8xf32>
  glow_low.loop %i = 3 {
    glow_low.copy @out %y, @in %x {kernel = "copy"}
  }
}
