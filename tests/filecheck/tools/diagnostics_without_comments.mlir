// Without any comments that expect errors, --verify-diagnostics prints the error and succeeds, as xdsl-opt does.

// RUN: glow-opt %s --verify-diagnostics -p verify-low | filecheck %s
// RUN: not glow-opt %s -p verify-low 2> /dev/null | filecheck %s --allow-empty --check-prefix=NOTHING

// CHECK: diagnostics_without_comments.mlir:{{[0-9]+}}:1: error: verify-low: @high is still a function of glow_high
// NOTHING-NOT: {{.}}
glow_high.func @high() {
}
