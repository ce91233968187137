// Each mistake is one line that names its place; pieces of the input do not disturb each other.

// RUN: not glow-opt %s --split-input-file 2>&1 | filecheck %s
// RUN: not glow-opt %s --split-input-file --debug 2>&1 | filecheck %s --check-prefix=DEBUG
// RUN: not glow-opt %s --split-input-file -o %t.mlir 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: not ls %t.mlir
// RUN: not glow-opt %s.nowhere 2>&1 | filecheck %s --check-prefix=MISSING

// CHECK: {{.*}}syntax_errors.mlir:[[# @LINE + 1]]:37: error: Expected '}'
glow_high.constant @c : tensor<2xf32> {weights
// -----
// CHECK: {{.*}}syntax_errors.mlir:[[# @LINE + 1]]:1: error: glow_high.constant: a constant has either 'weights' or 'value'
glow_high.constant @c : tensor<2xf32>
// -----
