// Loops, branches and early returns become blocks; loops are tested where their trips end.

// RUN: glow-opt %s -p scf-to-llvm | filecheck %s

// A loop that constants say runs is not tested in front of its first trip.
// CHECK-LABEL: llvm.func @runs(
// CHECK:         llvm.br ^[[BODY:[0-9a-z]+]](%[[ZERO:.*]], %[[START:.*]] : i64, f32)
// CHECK-NEXT:  ^[[BODY]](%[[I:.*]]: i64, %[[SUM:.*]]: f32):
// CHECK-NEXT:    %[[NEXT:.*]] = llvm.fadd %[[SUM]], %[[SUM]] : f32
// CHECK-NEXT:    %[[J:.*]] = llvm.add %[[I]], %[[STEP:.*]] : i64
// CHECK-NEXT:    %[[MORE:.*]] = llvm.icmp "slt" %[[J]], %[[LIMIT:.*]] : i64
// CHECK-NEXT:    llvm.cond_br %[[MORE]], ^[[BODY]](%[[J]], %[[NEXT]] : i64, f32), ^[[AFTER:.*]](%[[NEXT]] : f32)
// CHECK-NEXT:  ^[[AFTER]](%[[RESULT:.*]]: f32):
// CHECK-NEXT:    llvm.return %[[RESULT]] : f32
llvm.func @runs(%x: f32) -> f32 {
  %zero = llvm.mlir.constant(0) : i64
  %step = llvm.mlir.constant(2) : i64
  %limit = llvm.mlir.constant(8) : i64
  %sum = scf.for %i = %zero to %limit step %step iter_args(%s = %x) -> (f32) : i64 {
    %next = llvm.fadd %s, %s : f32
    scf.yield %next : f32
  }
  llvm.return %sum : f32
}

// CHECK-LABEL: llvm.func @may_run(
// CHECK-SAME:    %[[N:.*]]: i64, %[[X:.*]]: f32)
// CHECK:         %[[ANY:.*]] = llvm.icmp "slt" %{{.*}}, %[[N]] : i64
// CHECK-NEXT:    llvm.cond_br %[[ANY]], ^{{.*}}, ^[[AFTER:[0-9a-z]+]](%[[X]] : f32)
llvm.func @may_run(%n: i64, %x: f32) -> f32 {
  %zero = llvm.mlir.constant(0) : i64
  %one = llvm.mlir.constant(1) : i64
  %sum = scf.for %i = %zero to %n step %one iter_args(%s = %x) -> (f32) : i64 {
    %next = llvm.fadd %s, %s : f32
    scf.yield %next : f32
  }
  llvm.return %sum : f32
}

// The condition of a loop is computed in front of the first trip and at the end of each, branches in it too.
// CHECK-LABEL: llvm.func @while(
// CHECK-SAME:    %[[N:.*]]: i64)
// CHECK:         %[[GOES:.*]] = llvm.icmp "ult" %[[N]], %{{.*}} : i64
// CHECK-NEXT:    llvm.cond_br %[[GOES]], ^[[YES:[0-9a-z]+]], ^[[NO:[0-9a-z]+]]
// CHECK-NEXT:  ^[[YES]]:
// CHECK-NEXT:    llvm.br ^[[TESTED:[0-9a-z]+]](%[[GOES]] : i1)
// CHECK-NEXT:  ^[[NO]]:
// CHECK-NEXT:    llvm.br ^[[TESTED]](
// CHECK-NEXT:  ^[[TESTED]](%[[IS:.*]]: i1):
// CHECK-NEXT:    llvm.cond_br %[[IS]], ^[[BODY:[0-9a-z]+]](%[[N]] : i64), ^[[AFTER:[0-9a-z]+]](%[[N]] : i64)
// CHECK-NEXT:  ^[[BODY]](%[[V:.*]]: i64):
// CHECK-NEXT:    %[[W:.*]] = llvm.add %[[V]], %{{.*}} : i64
// CHECK-NEXT:    %[[AGAIN:.*]] = llvm.icmp "ult" %[[W]], %{{.*}} : i64
// CHECK:         llvm.cond_br %{{.*}}, ^[[BODY]](%[[W]] : i64), ^[[AFTER]](%[[W]] : i64)
// CHECK-NEXT:  ^[[AFTER]](%[[LAST:.*]]: i64):
// CHECK-NEXT:    llvm.return %[[LAST]] : i64
llvm.func @while(%n: i64) -> i64 {
  %limit = llvm.mlir.constant(100) : i64
  %false = llvm.mlir.constant(false) : i1
  %last = scf.while (%a = %n) : (i64) -> (i64) {
    %goes = llvm.icmp "ult" %a, %limit : i64
    %both = scf.if %goes -> (i1) {
      scf.yield %goes : i1
    } else {
      scf.yield %false : i1
    }
    scf.condition(%both) %a : i64
  } do {
  ^bb0(%v: i64):
    %w = llvm.add %v, %limit : i64
    scf.yield %w : i64
  }
  llvm.return %last : i64
}

// A branch without results and a second region is skipped; returns in it leave the function.
// CHECK-LABEL: llvm.func @leave(
// CHECK-SAME:    %[[C:.*]]: i1, %[[D:.*]]: i1, %[[S:.*]]: i32, %[[P:.*]]: !llvm.ptr)
// CHECK-NEXT:    llvm.cond_br %[[C]], ^[[INSIDE:[0-9a-z]+]], ^[[AFTER:[0-9a-z]+]]
// CHECK-NEXT:  ^[[INSIDE]]:
// CHECK-NEXT:    llvm.store %[[S]], %[[P]]
// CHECK-NEXT:    llvm.cond_br %[[D]], ^[[LEAVE:[0-9a-z]+]], ^[[STAY:[0-9a-z]+]]
// CHECK-NEXT:  ^[[LEAVE]]:
// CHECK-NEXT:    llvm.return %[[S]] : i32
// CHECK-NEXT:  ^[[STAY]]:
// CHECK-NEXT:    llvm.br ^[[AFTER]]
// CHECK-NEXT:  ^[[AFTER]]:
// CHECK-NEXT:    %[[ONE:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT:    llvm.return %[[ONE]] : i32
llvm.func @leave(%c: i1, %d: i1, %s: i32, %p: !llvm.ptr) -> i32 {
  scf.if %c {
    llvm.store %s, %p {alignment = 4 : i64} : i32, !llvm.ptr
    glow.return_if %d, %s : i32
  }
  %one = llvm.mlir.constant(1 : i32) : i32
  llvm.return %one : i32
}

// Functions in modules of other targets are flattened too, and declarations stay.
// CHECK:       builtin.module attributes {llvm.target_triple = "aarch64-linux-gnu"}
// CHECK-NEXT:    llvm.func @declared(i64)
// CHECK-NEXT:    llvm.func @void(
// CHECK-NEXT:      llvm.cond_br
builtin.module attributes {llvm.target_triple = "aarch64-linux-gnu"} {
  llvm.func @declared(i64)
  llvm.func @void(%c: i1) {
    glow.return_if %c
    llvm.return
  }
}
