// Accesses of memory that emulated threads share are checked, and barriers begin new phases.

// RUN: glow-opt %s --split-input-file -p check-races --verify-diagnostics | filecheck %s

// CHECK-LABEL: llvm.func @reversed(
// CHECK:         %[[PHASES:.*]] = llvm.alloca %c1 x i64
// CHECK:         %[[TAGS:.*]] = llvm.alloca %c128 x i64
// CHECK:         llvm.store %c1, %[[PHASES]]
// CHECK:         scf.for %{{.*}} = %{{.*}} to %c128 step %{{.*}} : i64 {
// CHECK:         %[[MEMORY:.*]] = llvm.alloca %{{.*}} x !llvm.array<256 x i8> {alignment = 16 : i64}
// CHECK:         scf.for %{{.*}} = %{{.*}} to %blocks step
// CHECK-NEXT:      %[[BEFORE:.*]] = llvm.load %[[PHASES]]
// CHECK-NEXT:      %[[BEHIND:.*]] = llvm.add %[[BEFORE]], %c1 : i64
// CHECK-NEXT:      llvm.store %[[BEHIND]], %[[PHASES]]
// CHECK-NEXT:      scf.for %[[THREAD:.*]] = %{{.*}} to %{{.*}} step
// CHECK-NEXT:        %[[OFFSET:.*]] = llvm.mul %[[THREAD]], %{{.*}} : i64
// CHECK-NEXT:        %[[PLACE:.*]] = llvm.getelementptr inbounds %[[MEMORY]][%[[OFFSET]]]
// CHECK-NEXT:        %[[PHASE:.*]] = llvm.load %[[PHASES]]
// CHECK-NEXT:        %[[UNIT:.*]] = llvm.udiv %[[OFFSET]], %c4{{.*}} : i64
// CHECK-NEXT:        llvm.call @[[WRITES:check_race.*]](%[[TAGS]], %[[UNIT]], %c1, %[[PHASE]], %[[THREAD]], %{{.*}})
// CHECK-NEXT:        llvm.store %x, %[[PLACE]]
// CHECK-NEXT:      } {glow.threads}
// CHECK-NEXT:      llvm.load %[[PHASES]]
// CHECK-NEXT:      llvm.add
// CHECK-NEXT:      llvm.store %{{.*}}, %[[PHASES]]
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        %[[LAST:.*]] = llvm.getelementptr inbounds %[[MEMORY]][63]
// CHECK-NEXT:        %[[PHASE:.*]] = llvm.load %[[PHASES]]
// CHECK-NEXT:        llvm.call @{{check_race.*}}(%[[TAGS]], %c63, %c1, %[[PHASE]]
// CHECK-NEXT:        llvm.load %[[LAST]]
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:       llvm.mlir.global internal @race(
// CHECK:       llvm.func @races() -> !llvm.ptr
llvm.func @reversed(%x: f32, %blocks: i64) {
  %zero = llvm.mlir.constant(0) : i64
  %one = llvm.mlir.constant(1) : i64
  %four = llvm.mlir.constant(4) : i64
  %threads = llvm.mlir.constant(64) : i64
  %all = llvm.mlir.constant(0 : i32) : i32
  %memory = llvm.alloca %one x !llvm.array<256 x i8> {alignment = 16 : i64, glow.shared = 4 : i64} : (i64) -> !llvm.ptr
  scf.for %block = %zero to %blocks step %one : i64 {
    scf.for %thread = %zero to %threads step %one : i64 {
      %offset = llvm.mul %thread, %four : i64
      %place = llvm.getelementptr inbounds %memory[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      llvm.store %x, %place {alignment = 4 : i64} : f32, !llvm.ptr
    } {glow.threads}
    llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"(%all) : (i32) -> ()
    scf.for %thread = %zero to %threads step %one : i64 {
      %place = llvm.getelementptr inbounds %memory[63] : (!llvm.ptr) -> !llvm.ptr, f32
      %y = llvm.load %place {alignment = 4 : i64} : !llvm.ptr -> f32
    } {glow.threads}
  } {glow.blocks}
  llvm.return
}

// -----

llvm.func @outside(%x: f32) {
  %one = llvm.mlir.constant(1) : i64
  %memory = llvm.alloca %one x f32 {alignment = 16 : i64, glow.shared = 4 : i64} : (i64) -> !llvm.ptr
  // expected-error @+1 {{shared memory is accessed only in loops with glow.threads}}
  llvm.store %x, %memory {alignment = 4 : i64} : f32, !llvm.ptr
  llvm.return
}

// -----

llvm.func @passed(%x: !llvm.ptr) {
  %one = llvm.mlir.constant(1) : i64
  %memory = llvm.alloca %one x f32 {alignment = 16 : i64, glow.shared = 4 : i64} : (i64) -> !llvm.ptr
  // expected-error @+1 {{a pointer to shared memory is for loads, stores and addresses, not for llvm.store}}
  llvm.store %memory, %x {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
  llvm.return
}

// -----

llvm.func @units() {
  %one = llvm.mlir.constant(1) : i64
  // expected-error @+1 {{glow.shared has to be a positive number of bytes}}
  %memory = llvm.alloca %one x f32 {alignment = 16 : i64, glow.shared = 0 : i64} : (i64) -> !llvm.ptr
  llvm.return
}

// -----

llvm.func @size() {
  %none = llvm.mlir.constant(-1) : i64
  // expected-error @+1 {{the size of shared memory has to be constant}}
  %memory = llvm.alloca %none x f32 {alignment = 16 : i64, glow.shared = 4 : i64} : (i64) -> !llvm.ptr
  llvm.return
}

// -----

llvm.func @indices(%n: i64) {
  %zero = llvm.mlir.constant(0) : i64
  %one = llvm.mlir.constant(1) : i64
  %memory = llvm.alloca %one x !llvm.array<4 x f32> {alignment = 16 : i64, glow.shared = 4 : i64} : (i64) -> !llvm.ptr
  scf.for %thread = %zero to %n step %one : i64 {
    // expected-error @+1 {{an address in shared memory needs a single index, in scalars or vectors}}
    %place = llvm.getelementptr inbounds %memory[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<4 x f32>
    %y = llvm.load %place {alignment = 4 : i64} : !llvm.ptr -> f32
  } {glow.threads}
  llvm.return
}
