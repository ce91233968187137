// Structured functions are one block each, whose loops and branches fit together.

// RUN: glow-opt %s --split-input-file -p verify-structured --verify-diagnostics | filecheck %s

// CHECK-LABEL: llvm.func @right(
// CHECK:         glow.return_if
llvm.func @right(%n: i64, %c: i1) -> i64 {
  %last = scf.while (%a = %n) : (i64) -> (i64) {
    scf.condition(%c) %a : i64
  } do {
  ^bb0(%v: i64):
    glow.return_if %c, %v : i64
    scf.yield %v : i64
  }
  llvm.return %last : i64
}

// -----

// expected-error @+1 {{@blocks has several blocks: loops and branches are scf.for, scf.while and scf.if}}
llvm.func @blocks() {
  llvm.br ^next
^next:
  llvm.return
}

// -----

// expected-error @+1 {{glow_high.func is neither a function nor a global of the llvm dialect}}
glow_high.func @graph() {
}

// -----

// expected-error @+1 {{@endless does not end with llvm.return}}
llvm.func @endless() {
  llvm.unreachable
}

// -----

llvm.func @region() {
  // expected-error @+1 {{scf.execute_region is no structured control flow: scf.for, scf.while and scf.if are}}
  scf.execute_region {
    scf.yield
  }
  llvm.return
}

// -----

llvm.func @index() {
  %n = arith.constant 1 : index
  // expected-error @+1 {{it counts with integers, not index}}
  scf.for %i = %n to %n step %n {
  }
  llvm.return
}

// -----

llvm.func @returned(%c: i1, %v: i32) -> i64 {
  %0 = llvm.mlir.constant(0) : i64
  // expected-error @+1 {{it returns (i32), where (i64) is expected}}
  glow.return_if %c, %v : i32
  llvm.return %0 : i64
}

// -----

llvm.func @passed(%n: i64, %c: i1) {
  // expected-error @+1 {{its condition passes on (i1), where (i64) is expected}}
  %last = scf.while (%a = %n) : (i64) -> (i64) {
    scf.condition(%c) %c : i1
  } do {
  ^bb0(%v: i64):
    scf.yield %v : i64
  }
  llvm.return
}

// -----

llvm.func @again(%n: i64, %c: i1) {
  // expected-error @+1 {{its trips yield (i1), where (i64) is expected}}
  %last = scf.while (%a = %n) : (i64) -> (i64) {
    scf.condition(%c) %a : i64
  } do {
  ^bb0(%v: i64):
    scf.yield %c : i1
  }
  llvm.return
}

// -----

llvm.func @yields(%c: i1) {
  // expected-error @+1 {{its branches yield (), where (i1) is expected}}
  %x = scf.if %c -> (i1) {
    scf.yield %c : i1
  } else {
  }
  llvm.return
}

// -----

llvm.func @one_way(%c: i1) {
  // expected-error @+1 {{a branch with results needs two regions}}
  %x = scf.if %c -> (i1) {
    scf.yield %c : i1
  }
  llvm.return
}
