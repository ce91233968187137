// Where the order of definitions counts.

// RUN: glow-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect | filecheck %s

// CHECK: "test.op"() : () -> i32
%fine = "test.op"() : () -> i32

// -----

func.func @function() -> i32 {
  // expected-error@+1 {{an operand is used before its definition}}
  %sum = arith.addi %one, %one : i32
  // expected-note@+1 {{it is defined here}}
  %one = arith.constant 1 : i32
  func.return %sum : i32
}

// -----

// Several blocks have an order, whatever they are in.
"test.graph_region"() ({
  // expected-error@+1 {{an operand is used before its definition}}
  %sum = "test.op"(%one) : (i32) -> i32
  // expected-note@+1 {{it is defined here}}
  %one = arith.constant 1 : i32
  "test.termop"() [^end] : () -> ()
^end:
  "test.termop"() : () -> ()
}) : () -> ()

// -----

// What is defined inside of another region stands nowhere around.
// expected-error@+1 {{an operand is defined outside of the regions around}}
%sum = "test.op"(%one) : (i32) -> i32
"test.op"() ({
  // expected-note@+1 {{it is defined here}}
  %one = "test.op"() : () -> i32
  "test.termop"() : () -> ()
}) : () -> ()
