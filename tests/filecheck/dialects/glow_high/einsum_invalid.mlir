// Einstein summation: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{'ab,c->a' has 2 terms for 1 operands}}
  %y = glow_high.einsum %x {equation = "ab,c->a"} : tensor<2xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{'a1' is no list of axes: letters, and '...' once}}
  %y = glow_high.einsum %x {equation = "a1->a"} : tensor<2xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{'abc' does not fit an operand of rank 2}}
  %y = glow_high.einsum %x {equation = "abc->a"} : tensor<2xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{the result of 'ab->c' has an axis that no term has}}
  %y = glow_high.einsum %x {equation = "ab->c"} : tensor<2xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{the result of 'ab->aa' has an axis twice}}
  %y = glow_high.einsum %x {equation = "ab->aa"} : tensor<2x2xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{the result of '...b->b' lacks the axes of '...'}}
  %y = glow_high.einsum %x {equation = "...b->b"} : tensor<3xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
  // expected-error@+1 {{axis 'a' is 2 and 3 long}}
  %y = glow_high.einsum %x {equation = "aa->a"} : tensor<2xf32>
}

// -----

glow_high.func @main() {
  %x = glow_high.splat {value = 1.0} : tensor<2xf32>
  %z = glow_high.splat {value = 1 : i32} : tensor<2xi32>
  // expected-error@+1 {{operands have different element types}}
  %y = glow_high.einsum %x, %z {equation = "a,a->a"} : tensor<2xf32>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @main
// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %x = glow_high.splat {value = 1.0} : tensor<2x3xf32>
}
