// RUN: glow-opt %s --split-input-file --allow-unregistered-dialect | filecheck %s

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
