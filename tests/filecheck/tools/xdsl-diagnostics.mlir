// Errors in the words of xdsl-opt, each in the place of the output of its piece; comments that expect errors are not read.

// RUN: glow-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics --xdsl-diagnostics | filecheck %s
// RUN: glow-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics --xdsl-diagnostics -o %t | filecheck %s --check-prefix=BESIDE
// RUN: filecheck %s --check-prefix=FILE < %t
// RUN: not glow-opt %s --split-input-file --xdsl-diagnostics 2>&1 | filecheck %s --check-prefix=REFUSED

// expected-error@+1 {{no error at all}}
%first = "test.op"() : () -> i32

// CHECK: %first = "test.op"() : () -> i32
// CHECK-NEXT: }
// CHECK-NEXT: // -----

// -----

// CHECK: Operation does not verify: Result must be scalar if operands are scalar, got vector<7xi1>
// BESIDE: Operation does not verify: Result must be scalar
// REFUSED: Operation does not verify: Result must be scalar
// REFUSED: xdsl-diagnostics.mlir:{{[0-9]+}}:1: error: llvm.icmp: Result must be scalar
%a, %b = "test.op"() : () -> (i32, i32)
%c = "llvm.icmp"(%a, %b) <{predicate = 0 : i64}> : (i32, i32) -> vector<7xi1>

// -----

// CHECK: // -----
// CHECK: no_such_type
// BESIDE: no_such_type
%d = "test.op"() : () -> !no_such_type

// -----

// CHECK: // -----
// CHECK: %last = "test.op"() : () -> i32
// FILE: %first = "test.op"() : () -> i32
// FILE: // -----
// FILE-NEXT: builtin.module
// FILE-NEXT: %last = "test.op"() : () -> i32
%last = "test.op"() : () -> i32
