// --verify-diagnostics: every expected error has to come, and no other.

// RUN: glow-opt %s --split-input-file --verify-diagnostics -p verify-low | filecheck %s --allow-empty
// RUN: grep -v expected-error@+1 %s > %t.mlir
// RUN: not glow-opt %t.mlir --split-input-file --verify-diagnostics -p verify-low 2>&1 | filecheck %s --check-prefix=UNEXPECTED
// RUN: not glow-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s --check-prefix=MISSING

// CHECK-NOT: builtin.module

// UNEXPECTED: {{.*}}.mlir:{{[0-9]+}}:3: error: unexpected error: verify-low: the allocation is never deallocated
// UNEXPECTED-NOT: error:
glow_low.func @leak() {
  // expected-error@+1 {{never deallocated}}
  %0 = glow_low.alloc : memref<4xf32>
}

// -----

// MISSING: {{.*}}diagnostics.mlir:{{[0-9]+}}:1: error: expected error "never deallocated" was not produced
// MISSING: {{.*}}diagnostics.mlir:{{[0-9]+}}:1: error: expected error "still a function of glow_high" was not produced
glow_high.func @high() { // expected-error {{still a function of glow_high}}
}
