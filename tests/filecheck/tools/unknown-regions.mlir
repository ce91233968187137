// Ops with regions that are none of ours are told by place, whatever pass is next, verified or not.

// RUN: not glow-opt %s -p remove-identity-clips 2>&1 | filecheck %s
// RUN: not glow-opt %s -p glow-high-to-glow-low --disable-verify 2>&1 | filecheck %s --check-prefix=UNVERIFIED

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @flag : tensor<i1> {input}
glow_high.placeholder @y : tensor<4xf32> {output}

// CHECK: unknown-regions.mlir:12:1: error: glow_high.func: a glow_high.func does not hold scf.execute_region
// UNVERIFIED: unknown-regions.mlir:14:3: error: glow_high.func @main does not hold scf.execute_region (hint: branches and loops are 'if' and 'loop' of the function's own dialect)
glow_high.func @main(@x, @flag, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %0 = scf.execute_region -> (tensor<4xf32>) {
    %1 = glow_high.relu %x : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  glow_high.save %0, @y
}
