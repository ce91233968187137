// What goes on around passes is reported on stderr, never among the product.

// RUN: glow-opt %s -p cse,canonicalize --mlir-print-ir-before=canonicalize --mlir-print-ir-after=cse -o /dev/null 2>&1 | filecheck %s --check-prefix=SOME
// RUN: glow-opt %s -p cse,canonicalize --mlir-print-ir-before-all --mlir-print-ir-after-all -o /dev/null 2>&1 | filecheck %s --check-prefix=ALL
// RUN: glow-opt %s -p canonicalize,cse --mlir-print-ir-after-change -o /dev/null 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: not glow-opt %s -p cse,verify-low --mlir-print-ir-after-failure 2>&1 | filecheck %s --check-prefix=FAILURE
// RUN: glow-opt %s -p cse,canonicalize --print-between-passes --time-passes --mlir-timing 2> /dev/null | filecheck %s --check-prefix=STDOUT
// RUN: glow-opt %s -p cse,canonicalize --time-passes -o /dev/null 2>&1 | filecheck %s --check-prefix=TIMES
// RUN: glow-opt %s -p cse,canonicalize --mlir-timing -o /dev/null 2>&1 | filecheck %s --check-prefix=TIMING
// RUN: glow-opt %s -p cse,canonicalize --mlir-pass-statistics -o /dev/null 2>&1 | filecheck %s --check-prefix=STATISTICS
// RUN: glow-opt %s --stage allocated --mlir-pass-statistics -o /dev/null 2>&1 | filecheck %s --check-prefix=PIPELINE
// RUN: glow-opt %s --stage allocated --mlir-pass-statistics --mlir-pass-statistics-display=list -o /dev/null 2>&1 | filecheck %s --check-prefix=LIST
// RUN: glow-opt %s -p cse,canonicalize --mlir-print-ir-after-all --mlir-print-ir-before=cse --mlir-print-ir-tree-dir=%t -o /dev/null
// RUN: ls %t | filecheck %s --check-prefix=TREE
// RUN: glow-opt %t/000_cse.mlir | filecheck %s --check-prefix=STDOUT
// RUN: not glow-opt %s --mlir-print-ir-after=no-such-pass 2>&1 | filecheck %s --check-prefix=UNKNOWN

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %again = glow_high.get @x : tensor<4xf32>
  %1 = glow_high.add %x, %again : tensor<4xf32>
  glow_high.save %1, @y
}

// SOME: // -----// IR Dump After CsePass (cse) //----- //
// SOME-NEXT: builtin.module
// SOME: // -----// IR Dump Before CanonicalizePass (canonicalize) //----- //
// SOME-NOT: IR Dump

// ALL: IR Dump Before {{.*}} (cse)
// ALL: IR Dump After {{.*}} (cse)
// ALL: IR Dump Before {{.*}} (canonicalize)
// ALL: IR Dump After {{.*}} (canonicalize)

// CHANGE-NOT: (canonicalize)
// CHANGE: IR Dump After {{.*}} (cse)

// FAILURE: IR Dump After Failure of VerifyLowPass (verify-low)
// FAILURE: observers.mlir:{{[0-9]+}}:1: error: verify-low:

// STDOUT-NOT: -----
// STDOUT-NOT: took
// STDOUT: glow_high.add %x, %x
// STDOUT-NOT: -----

// TIMES: Pass cse took {{[0-9.e-]+}} seconds
// TIMES: Pass canonicalize took

// TIMING: ... Execution time report ...
// TIMING: Total Execution Time: {{[0-9.]+}} seconds
// TIMING: ({{.*}}%)  Parser
// TIMING-NEXT: ({{.*}}%)  cse
// TIMING-NEXT: ({{.*}}%)  canonicalize
// TIMING: (100.0%)  Total

// STATISTICS: ... Pass statistics report ...
// STATISTICS: cse: 8 -> 7 ops (glow_high.get 2 -> 1)
// STATISTICS-NEXT: canonicalize: 7 -> 7 ops

// PIPELINE:      eliminate-copies: {{[0-9]+}} -> {{[0-9]+}} ops ({{.*}}glow_low.copy 1 -> 0
// PIPELINE-NEXT: (S) 1 copies eliminated
// PIPELINE-NEXT: stack:
// PIPELINE-NEXT: (S) 1 instructions stacked
// PIPELINE-NEXT: (S) 1 stacks made
// PIPELINE:      remove-unused-storage: {{[0-9]+}} -> {{[0-9]+}} ops
// PIPELINE-NOT:  (S) 0

// LIST:      allocate: 1 run, +0 ops
// LIST:      eliminate-copies: 2 runs, -{{[0-9]+}} ops
// LIST-NEXT: (S) 1 copies eliminated
// LIST:      fold-constants: {{[0-9]+}} runs, +0 ops

// TREE: 000_cse.mlir
// TREE-NEXT: 000_cse_before.mlir
// TREE-NEXT: 001_canonicalize.mlir

// UNKNOWN: glow-opt: error: there is no pass 'no-such-pass' (hint: --list-passes prints all)
