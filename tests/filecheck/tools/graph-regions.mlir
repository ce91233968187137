// RUN: glow-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect | filecheck %s

// In a module, as in any graph, the order says nothing.
// CHECK: %[[A:.*]] = "test.op"(%[[B:.*]]) : (i32) -> i32
// CHECK-NEXT: %[[B]] = "test.op"(%[[A]]) : (i32) -> i32
builtin.module {
  %a = "test.op"(%b) : (i32) -> i32
  %b = "test.op"(%a) : (i32) -> i32
}

// -----

// A function has an order, and a graph in it has none.
// CHECK-LABEL: func.func @graph
func.func @graph() {
  // CHECK: "test.graph_region"() ({
  // CHECK-NEXT: arith.addi
  "test.graph_region"() ({
    %sum = arith.addi %one, %one : i32
    %one = arith.constant 1 : i32
    "test.yield"(%sum) : (i32) -> ()
  }) : () -> ()
  func.return
}

// -----

// The classes of an e-graph make circles, also in the body of a function.
// CHECK-LABEL: func.func @classes
// CHECK: equivalence.class
func.func @classes(%a: index) -> index {
  %class = equivalence.class %a, %product : index
  %product = arith.muli %class, %class : index
  func.return %class : index
}

// -----

// CHECK-NOT: @function
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
// expected-error@+1 {{an operand is used before its definition}}
%sum = "test.op"(%one) : (i32) -> i32
"test.op"() ({
  // expected-note@+1 {{it is defined here}}
  %one = "test.op"() : () -> i32
  "test.termop"() : () -> ()
}) : () -> ()
