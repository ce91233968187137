// Modules without the one block that they have.

// RUN: not glow-opt %s --split-input-file 2>&1 | filecheck %s
// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s --allow-empty --check-prefix=NOTHING

// NOTHING-NOT: {{.}}

// CHECK: modules_invalid.mlir:10:1: error: builtin.module: a module has one region of one block
// expected-error@+1 {{a module has one region of one block}}
"builtin.module"() ({}) : () -> ()

// -----

// CHECK-NEXT: modules_invalid.mlir:17:3: error: builtin.module: Region 'body' at position 0 expected a single block
"builtin.module"() ({
  // expected-error@+1 {{expected a single block, but got 0 blocks}}
  "builtin.module"() ({}) : () -> ()
}) : () -> ()

// -----

// CHECK-NEXT: modules_invalid.mlir:{{[0-9]+}}:3: error: builtin.module: Expected 0 results, but got 1
builtin.module {
  // expected-error@+1 {{Expected 0 results, but got 1}}
  %x = "builtin.module"() : () -> i32
}
