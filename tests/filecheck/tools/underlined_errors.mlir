// Errors that stand in the place of an output have the text underlined in front of them, in xDSL's words.

// RUN: glow-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: ^
// CHECK-NEXT: undefined symbol alias '!no_such_type'
// CHECK: underlined_errors.mlir:{{[0-9]+}}:1: error: undefined symbol alias '!no_such_type'
%d = "test.op"() : () -> !no_such_type

// -----

// CHECK: // -----
// CHECK: %c = "llvm.icmp"(%a, %b)
// CHECK-NEXT: ^^^^^^
// CHECK-NEXT: Operation does not verify: Result must be scalar if operands are scalar, got vector<7xi1>
// CHECK: underlined_errors.mlir:{{[0-9]+}}:1: error: llvm.icmp: Result must be scalar
%a, %b = "test.op"() : () -> (i32, i32)
%c = "llvm.icmp"(%a, %b) <{predicate = 0 : i64}> : (i32, i32) -> vector<7xi1>
