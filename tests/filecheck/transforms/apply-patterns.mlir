// One pattern runs alone, is counted by its name, and is named in the log.

// RUN: glow-opt %s -p 'apply-patterns{name=cancel-transposes}' | filecheck %s --check-prefix=CANCEL
// RUN: glow-opt %s -p 'apply-patterns{name=expand-power,fold-constant-operands}' | filecheck %s --check-prefix=BOTH
// RUN: glow-opt %s -p 'apply-patterns{name=expand-power}' --mlir-pass-statistics -o /dev/null 2>&1 | filecheck %s --check-prefix=COUNT
// RUN: glow-opt %s -p 'apply-patterns{name=expand-power}' --compilation-log - -o /dev/null 2>&1 | filecheck %s --check-prefix=LOG
// RUN: glow-opt %s -p sink-transposes --mlir-pass-statistics -o /dev/null 2>&1 | filecheck %s --check-prefix=PASS
// RUN: glow-opt --list-passes | filecheck %s --check-prefix=LIST
// RUN: not glow-opt %s -p 'apply-patterns{name=cancel-transpose}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not glow-opt %s -p apply-patterns 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not glow-opt %s -p 'apply-patterns{names=cancel-transposes}' 2>&1 | filecheck %s --check-prefix=OTHER
// RUN: glow-opt %s -p 'apply-patterns{name=expand-power,fold-constant-operands}' --dump-pass-pipeline -o /dev/null 2>&1 | filecheck %s --check-prefix=SPEC

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @y : tensor<2x3xf32> {output}
glow_high.placeholder @z : tensor<f32> {output}
glow_high.func @main(@x, @y, @z) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %1 = glow_high.transpose %x {permutation = [1, 0]} : tensor<3x2xf32>
  %2 = glow_high.transpose %1 {permutation = [1, 0]} : tensor<2x3xf32>
  %e = glow_high.splat {value = 2.0} : tensor<f32>
  %3 = glow_high.pow %2, %e : tensor<2x3xf32> loc("square")
  glow_high.save %3, @y
  %4 = glow_high.add %e, %e : tensor<f32>
  glow_high.save %4, @z
}

// CANCEL-NOT: transpose
// CANCEL:     %{{.*}} = glow_high.pow %x, %e : tensor<2x3xf32>
// CANCEL:     glow_high.add %e, %e

// BOTH: glow_high.transpose
// BOTH: glow_high.transpose
// BOTH: glow_high.mul
// BOTH: glow_high.splat {value = 4.0{{.*}}} : tensor<f32>

// COUNT: apply-patterns: 13 -> 13 ops (glow_high.mul 0 -> 1, glow_high.pow 1 -> 0)
// COUNT-NEXT: (S) 1 expand-power

// LOG:      node 'square'
// LOG:        found glow_high.pow : tensor<2x3xf32>
// LOG:      1 apply-patterns
// LOG-NEXT:   removed glow_high.pow : tensor<2x3xf32> by expand-power
// LOG-NEXT:   created glow_high.mul : tensor<2x3xf32> by expand-power

// PASS: sink-transposes: 13 -> 11 ops (glow_high.transpose 2 -> 0)
// PASS-NEXT: (S) 1 cancel-transposes

// LIST:      apply-patterns{name=<
// LIST:      sink-transposes
// LIST-NEXT:   Move transposes below operators
// LIST-NEXT:   patterns: cancel-transposes, transpose-to-reshape, merge-transposes, sink-transpose, raise-transpose

// UNKNOWN: glow-opt: error: there is no pattern 'cancel-transpose' (hint: cancel-transposes, {{.*}}; glow-opt --list-passes lists them with their passes)
// NONE: glow-opt: error: pass pipeline 'apply-patterns': apply-patterns takes one argument, "name", with one pattern or several (hint: glow-opt --list-passes lists them)
// OTHER: glow-opt: error: pass pipeline 'apply-patterns{names=cancel-transposes}': apply-patterns: no option 'names' (hint: name)
// SPEC: apply-patterns{name="expand-power","fold-constant-operands"}
