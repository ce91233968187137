// Accesses say the alignment that follows from that of parameters, through loops and branches.

// RUN: glow-opt %s -p raise-alignments | filecheck %s

// CHECK-LABEL: llvm.func @loop(
// CHECK:         llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK:         llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK:         llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
llvm.func @loop(%p: !llvm.ptr {llvm.align = 64 : i64}, %q: !llvm.ptr, %n: i64) {
  %zero = llvm.mlir.constant(0) : i64
  %four = llvm.mlir.constant(4) : i64
  %six = llvm.mlir.constant(6) : i64
  scf.for %i = %zero to %n step %four : i64 {
    %a = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %0 = llvm.load %a {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
  }
  scf.for %i = %zero to %n step %six : i64 {
    %b = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %1 = llvm.load %b {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
  }
  scf.for %i = %zero to %n step %four : i64 {
    %c = llvm.getelementptr inbounds %q[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %2 = llvm.load %c {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
  }
  llvm.return
}

// A pointer that a loop carries is as aligned as what it begins with and each step.
// CHECK-LABEL: llvm.func @carried(
// CHECK:         llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK:         llvm.store {{.*}} {alignment = 8 : i64} : vector<4xf32>, !llvm.ptr
llvm.func @carried(%p: !llvm.ptr {llvm.align = 16 : i64}, %n: i64) {
  %zero = llvm.mlir.constant(0) : i64
  %one = llvm.mlir.constant(1) : i64
  %last = scf.for %i = %zero to %n step %one iter_args(%at = %p) -> (!llvm.ptr) : i64 {
    %0 = llvm.load %at {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
    %next = llvm.getelementptr inbounds %at[2] : (!llvm.ptr) -> !llvm.ptr, f32
    llvm.store %0, %next {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
    scf.yield %next : !llvm.ptr
  }
  llvm.return
}

// The result of a branch is as aligned as the worse of both ways, that of a loop with a condition as what that passes on.
// CHECK-LABEL: llvm.func @chosen(
// CHECK:         llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK:         llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK:         llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
llvm.func @chosen(%p: !llvm.ptr {llvm.align = 16 : i64}, %c: i1) {
  %r = scf.if %c -> (!llvm.ptr) {
    scf.yield %p : !llvm.ptr
  } else {
    %q = llvm.getelementptr inbounds %p[6] : (!llvm.ptr) -> !llvm.ptr, f32
    scf.yield %q : !llvm.ptr
  }
  %0 = llvm.load %r {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
  %last = scf.while (%a = %p) : (!llvm.ptr) -> (!llvm.ptr) {
    scf.condition(%c) %a : !llvm.ptr
  } do {
  ^bb0(%b: !llvm.ptr):
    %1 = llvm.load %b {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
    %next = llvm.getelementptr inbounds %b[8] : (!llvm.ptr) -> !llvm.ptr, f32
    scf.yield %next : !llvm.ptr
  }
  %2 = llvm.load %last {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
  llvm.return
}

// What a file may say besides: accesses without an alignment, addresses with several indices, shifts of any width.
// CHECK-LABEL: llvm.func @given(
// CHECK:         llvm.load %p : !llvm.ptr -> vector<4xf32>
// CHECK:         llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
llvm.func @given(%p: !llvm.ptr {llvm.align = 16 : i64}, %n: i64) {
  %wide = llvm.mlir.constant(9223372036854775807) : i64
  %0 = llvm.load %p : !llvm.ptr -> vector<4xf32>
  %row = llvm.getelementptr inbounds %p[1, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<4 x f32>
  %1 = llvm.load %row {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
  %far = llvm.shl %n, %wide : i64
  %a = llvm.getelementptr inbounds %p[%far] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %2 = llvm.load %a {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
  llvm.return
}
