// Operators take their simplest form until nothing changes; each of the patterns runs alone, and is counted.

// RUN: glow-opt %s -p canonicalize | filecheck %s
// RUN: glow-opt %s -p canonicalize --mlir-pass-statistics -o /dev/null 2>&1 | filecheck %s --check-prefix=COUNT
// RUN: glow-opt %s -p 'apply-patterns{name=transpose-of-transpose}' | filecheck %s --check-prefix=ALONE
// RUN: glow-opt %s --list-passes | filecheck %s --check-prefix=LIST

// What one rewrite leaves, the next takes up: two transposes, then one, then nothing. The dead operator goes too.

// CHECK-LABEL: glow_high.func @main(
// CHECK-NEXT:    %[[Y:.*]] = glow_high.relu %x : tensor<2x4xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]

// COUNT: canonicalize: {{.*}} ops (glow_high.abs 1 -> 0, glow_high.transpose 2 -> 0)
// COUNT-NEXT: (S) 1 fold-to-operand
// COUNT-NEXT: (S) 1 transpose-of-transpose

// ALONE: %[[T:.*]] = glow_high.transpose %x {permutation = [0, 1]}
// ALONE-NEXT: %[[A:.*]] = glow_high.relu %[[T]]

// LIST: canonicalize
// LIST-NEXT: Apply canonicalization patterns until nothing changes
// LIST-NEXT: patterns: fold-to-operand,{{.*}} transpose-of-transpose
// LIST-NOT: {{^  canonicalize$}}
glow_high.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = glow_high.transpose %x {permutation = [1, 0]} : tensor<4x2xf32>
  %1 = glow_high.transpose %0 {permutation = [1, 0]} : tensor<2x4xf32>
  %2 = glow_high.abs %1 : tensor<2x4xf32>
  %y = glow_high.relu %1 : tensor<2x4xf32>
  glow_high.return %y
}
