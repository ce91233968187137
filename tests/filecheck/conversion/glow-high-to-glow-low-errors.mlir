// An op that is no operator has no instruction: it is refused, never dropped.

// RUN: not glow-opt %s --disable-verify -p glow-high-to-glow-low 2>&1 | filecheck %s
// RUN: not glow-opt %s 2>&1 | filecheck %s --check-prefix=VERIFIED

// VERIFIED: error: glow_high.func: a glow_high.func does not hold arith.constant

// CHECK: glow-high-to-glow-low-errors.mlir:{{[0-9]+}}:3: error: glow_high.func @main does not hold arith.constant
glow_high.func @main() {
  %0 = arith.constant 1.0 : f32
}
