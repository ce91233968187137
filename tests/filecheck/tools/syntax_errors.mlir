// Each mistake is one line that names its place; pieces of the input do not disturb each other.

// RUN: not glow-opt %s --split-input-file 2>&1 | filecheck %s
// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s --check-prefix=ALONE
// RUN: not glow-opt %s --split-input-file --debug 2>&1 | filecheck %s --check-prefix=DEBUG
// RUN: not glow-opt %s --split-input-file -o %t.mlir 2>&1 | filecheck %s
// RUN: not ls %t.mlir
// RUN: not glow-opt %s.nowhere 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not glow-opt %s --split-input-file -o %t/nowhere/x.mlir 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK: {{.*}}syntax_errors.mlir:{{[0-9]+}}:1: error: Expected '}'
// expected-error@+3 {{Expected '}'}}
glow_high.constant @unfinished : tensor<2xf32> {weights

// -----

// CHECK-NEXT: {{.*}}syntax_errors.mlir:{{[0-9]+}}:1: error: glow_high.constant: a constant has either 'weights' or 'value'
// expected-error@+1 {{a constant has either 'weights' or 'value'}}
glow_high.constant @empty : tensor<2xf32>

// -----

// ALONE-NOT: -----
// ALONE: glow_high.placeholder @fine
// ALONE-NOT: -----
glow_high.placeholder @fine : tensor<2xf32> {input}

// -----

// CHECK-NEXT: {{.*}}syntax_errors.mlir:{{[0-9]+}}:{{[0-9]+}}: error: {{.*}}used before
glow_high.func @main() {
  // expected-error@+1 {{used before}}
  %0 = glow_high.relu %nowhere : tensor<2xf32>
}

// -----

// CHECK-NEXT: {{.*}}syntax_errors.mlir:{{[0-9]+}}:31: error: expected an operation, a block or '}', got ':'
glow_high.func @behind(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{expected an operation, a block or '}', got ':'}}
  glow_high.save %x, @nowhere : tensor<2xf32>
}

// -----

// CHECK-NEXT: {{.*}}syntax_errors.mlir:{{[0-9]+}}:3: error: glow_high.add: shapes (2,), (3,) do not broadcast
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.placeholder @y : tensor<3xf32> {input}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<2xf32>
  %y = glow_high.get @y : tensor<3xf32>
  // expected-error@below {{shapes (2,), (3,) do not broadcast}}
  %0 = glow_high.add %x, %y : tensor<3xf32>
}

// -----

// CHECK-NEXT: {{.*}}syntax_errors.mlir:{{[0-9]+}}:{{[0-9]+}}: error: {{.*}}glow_high.no_such_operator
%0 = glow_high.no_such_operator : tensor<2xf32> // expected-error {{glow_high.no_such_operator is not registered}}

// -----

// The generic form may name a value before it is there; the module is still wrong.

// CHECK-NEXT: {{.*}}syntax_errors.mlir:{{[0-9]+}}:3: error: glow_high.neg: an operand is used before its definition
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.func @main(@x) {
  // expected-error@+1 {{an operand is used before its definition}}
  %0 = "glow_high.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  // expected-note@+1 {{it is defined here}}
  %x = glow_high.get @x : tensor<2xf32>
}

// DEBUG: Traceback
// DEBUG: ParseError

// MISSING: {{.*}}syntax_errors.mlir.nowhere: error: cannot be read: No such file or directory
