// Module-level storage and functions: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// expected-error@+1 {{a constant has either 'weights' or 'value'}}
glow_high.constant @neither : tensor<2xi64>

// -----

// expected-error@+1 {{value has type tensor<2xi64>, the storage tensor<3xi64>}}
glow_high.constant @misfit : tensor<3xi64> {value = dense<[1, 2]> : tensor<2xi64>}

// -----

// expected-error@+1 {{a placeholder is exactly one of 'input', 'output', 'state', 'packed_by', 'between'}}
glow_high.placeholder @nothing : tensor<2xf32>

// -----

// expected-error@+1 {{a placeholder is exactly one of 'input', 'output', 'state', 'packed_by', 'between'}}
glow_high.placeholder @both : tensor<2xf32> {input, output}

// -----

// expected-error@+1 {{only state has an initial value}}
glow_high.placeholder @x : tensor<2xf32> {input, value = dense<1.0> : tensor<2xf32>}

// -----

// expected-error@+1 {{content is either 'weights' or 'value'}}
glow_high.placeholder @s : tensor<2xf32> {state, weights = "sha256:0", value = dense<1.0> : tensor<2xf32>}

// -----

// expected-error@+1 {{value has type tensor<2xf32>, the storage tensor<3xf32>}}
glow_high.placeholder @s : tensor<3xf32> {state, value = dense<1.0> : tensor<2xf32>}

// -----

// expected-error@+1 {{only state is trainable}}
glow_high.placeholder @x : tensor<2xf32> {input, trainable}

// -----

glow_high.constant @fixed : tensor<2xi64> {value = dense<[1, 2]> : tensor<2xi64>}
// expected-error@+1 {{@fixed is bound, but is no placeholder of the module}}
glow_high.func @main(@fixed) {
}

// -----

glow_high.func @main() {
  // expected-error@+1 {{result has type tensor<3xf32>, but tensor<3xf64> follows from the operands}}
  %x = glow_high.splat {value = 1.0 : f64} : tensor<3xf32>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @main
// CHECK: glow_high.func @fine()
// CHECK-NOT: @main
glow_high.func @fine() {
  %x = glow_high.splat {value = 1.0} : tensor<2xf32>
}

// -----

// expected-error@+1 {{has at most 32 axes, not 33}}
glow_high.placeholder @wide : tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32> {input}

// -----

// expected-error@+1 {{nobody calls it by a label}}
glow_high.placeholder @p : tensor<4xf32> {packed_by = @pack, label = "p"}
