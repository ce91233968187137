// Allocated instructions become functions, one for all that are equal, and an entry that calls them in order.

// RUN: glow-opt %s -p 'assign-target{target=avx2 threads=2},glow-low-to-scf' | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=scalar threads=2},glow-low-to-scf' | filecheck %s --check-prefix=SCALAR
// RUN: glow-opt %s -p 'assign-target{target=avx2 threads=2},glow-low-to-scf{profile=true}' | filecheck %s --check-prefix=PROFILE
// RUN: glow-opt %s -p 'assign-target{target=avx2 threads=2},glow-low-to-scf{instrument=true pool=false}' | filecheck %s --check-prefix=OBSERVE

glow_high.constant @scale : tensor<20xf32> {weights = "sha256:0"}
glow_high.placeholder @x : tensor<2x20xf32> {input}
glow_high.placeholder @y : tensor<2x20xf32> {output}
glow_high.placeholder @z : tensor<2x20xf32> {output}
glow_low.func @main(@x, @y, @z) attributes {activations = 192, activations_bound = 192, constants = 128} {
  %x = glow_low.weight @x {region = "bindings", offset = 0} : memref<2x20xf32>
  %y = glow_low.weight @y {mutable, region = "bindings", offset = 1} : memref<2x20xf32>
  %z = glow_low.weight @z {mutable, region = "bindings", offset = 2} : memref<2x20xf32>
  %scale = glow_low.weight @scale {region = "constants", offset = 64} : memref<20xf32>
  %t = glow_low.alloc {offset = 128} : memref<2x20xf32>
  glow_low.stack @out %t, @in %x, @in %scale {
    maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>],
    iterators = ["parallel", "parallel"], kernel = "stack"
  } {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.mulf %a, %b : f32
    glow_low.yield %0 : f32
  }
  glow_low.copy @out %y, @in %t {kernel = "copy"}
  glow_low.copy @out %z, @in %t {kernel = "copy"}
  glow_low.dealloc @out %t
}

// Cut into parts, for several threads: the task is a function of one of them, which finds its operands in an array.
glow_low.func @parts(@x, @y) attributes {activations = 64, activations_bound = 64, constants = 0} {
  %x = glow_low.weight @x {region = "bindings", offset = 0} : memref<2x20xf32>
  %y = glow_low.weight @y {mutable, region = "bindings", offset = 1} : memref<2x20xf32>
  glow_low.copy @out %y, @in %x {kernel = "copy", partitions = {lines = 4}}
}

// One loop over the rows; in it vectors of the register's width, and half of one for what remains.
// CHECK-LABEL: llvm.func internal @stack
// CHECK-SAME: (%{{.*}}: !llvm.ptr, %[[X:.*]]: !llvm.ptr, %[[S:.*]]: !llvm.ptr)
// CHECK: scf.for %[[ROW:.*]] = %{{.*}} to %{{.*}} step %{{.*}} : i64 {
// CHECK-NEXT: scf.for %[[COLUMN:.*]] = %{{.*}} to %{{.*}} step %{{.*}} : i64 {
// CHECK: llvm.getelementptr inbounds %[[X]]
// CHECK-NEXT: llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
// CHECK: llvm.getelementptr inbounds %[[S]]
// CHECK: llvm.fmul {{.*}} : vector<8xf32>
// CHECK: {{^      }$}}
// CHECK-NOT: scf.for
// CHECK: llvm.fmul {{.*}} : vector<4xf32>
// CHECK: {{^    }$}}
// CHECK-NEXT: llvm.return

// Both copies are one function, and one loop: rows follow each other without a gap.
// CHECK-LABEL: llvm.func internal @copy
// CHECK: llvm.mlir.constant(40) : i64
// CHECK: scf.for
// CHECK: llvm.load {{.*}} -> vector<8xi32>
// CHECK-NOT: scf.for
// CHECK: llvm.return
// CHECK-NOT: llvm.func internal

// Offsets are in bytes; bindings are loaded by position.
// CHECK-LABEL: llvm.func @main(
// CHECK-SAME: %[[CONSTANTS:.*]]: !llvm.ptr, %[[BINDINGS:.*]]: !llvm.ptr, %[[ACTIVATIONS:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
// CHECK: %[[IN:.*]] = llvm.load %[[BINDINGS]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.getelementptr inbounds %[[BINDINGS]][1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: llvm.getelementptr inbounds %[[BINDINGS]][2]
// CHECK: %[[SCALE:.*]] = llvm.getelementptr inbounds %[[CONSTANTS]][64] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK: %[[T:.*]] = llvm.getelementptr inbounds %[[ACTIVATIONS]][128]
// CHECK: llvm.call @stack{{.*}}(%[[T]], %[[IN]], %[[SCALE]])
// CHECK: llvm.call @[[COPY:copy[^(]*]](%{{.*}}, %[[T]])
// CHECK: llvm.call @[[COPY]](%{{.*}}, %[[T]])
// CHECK: llvm.return %{{.*}} : i32
// CHECK-NOT: glow_low

// Without `parallel`, one call runs all parts.
// CHECK-LABEL: llvm.func internal @parallel_for(
// CHECK-SAME: %[[PARALLEL:.*]]: !llvm.ptr, %[[TASK:.*]]: !llvm.ptr, %[[DATA:.*]]: !llvm.ptr, %{{.*}}: i64)
// CHECK: llvm.call %[[TASK]](%[[DATA]], %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, i64, i64) -> ()
// CHECK: %[[FUNCTION:.*]] = llvm.load %[[PARALLEL]]
// CHECK: llvm.call %[[FUNCTION]](%{{.*}}, %[[TASK]], %[[DATA]], %{{.*}})

// CHECK-LABEL: llvm.func internal @copy.2x20.lines(
// CHECK-SAME: %[[DATA:.*]]: !llvm.ptr, %[[PART:.*]]: i64, %{{.*}}: i64)
// CHECK: llvm.load %[[DATA]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK: %[[FIRST:.*]] = llvm.and %[[PART]]
// CHECK: llvm.lshr %[[PART]]
// CHECK: llvm.mul %[[FIRST]]

// CHECK-LABEL: llvm.func @parts(
// CHECK-SAME: %[[PARALLEL:[^:]*]]: !llvm.ptr) -> i32
// CHECK: %[[POINTERS:.*]] = llvm.alloca {{.*}} x !llvm.ptr
// CHECK: %[[COUNT:.*]] = llvm.mlir.constant(4) : i64
// CHECK: %[[TASK:.*]] = llvm.mlir.addressof @copy.2x20.lines
// CHECK: llvm.call @parallel_for(%[[PARALLEL]], %[[TASK]], %[[POINTERS]], %[[COUNT]])
// CHECK: llvm.func @glow_pool_share(
// CHECK: llvm.func @glow_pool_work(
// CHECK: llvm.func @glow_pool_stop(

// SCALAR-NOT: vector<
// SCALAR: llvm.fmul {{.*}} : f32
// SCALAR-NOT: vector<

// The stamps go to the binding behind the last: one in front of each call, one at the end.
// PROFILE: llvm.func @main(
// PROFILE-COUNT-4: llvm.readcyclecounter
// PROFILE: llvm.return

// Where an entry is instrumented, it tells an observer of each instruction, before and after it.

// OBSERVE: llvm.mlir.global private constant @main.data.1("stack\00")
// OBSERVE: llvm.func internal @observe(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64)
// OBSERVE: llvm.func @main(
// OBSERVE: llvm.call @observe(
// OBSERVE: llvm.call @observe(
// OBSERVE-NOT: llvm.func @glow_pool_share
