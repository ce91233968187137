// RUN: glow-opt %s -p constant-fold-interp | filecheck %s

// The dialect is rebuilt with what xDSL's lacks, and still makes constants of what xDSL's interpreter computes.
// CHECK-LABEL: func.func @sum
func.func @sum() -> i32 {
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  // CHECK: %[[FIVE:.*]] = arith.constant 5 : i32
  // CHECK-NEXT: func.return %[[FIVE]] : i32
  %five = arith.addi %two, %three : i32
  func.return %five : i32
}
