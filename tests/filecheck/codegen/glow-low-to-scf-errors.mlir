// A function without places in memory becomes no machine code, and is not lost either.

// RUN: not glow-opt %s --split-input-file -p glow-low-to-scf 2>&1 | filecheck %s

// CHECK: glow-low-to-scf-errors.mlir:6:1: error: @graph has operators, not instructions (hint: run all passes up to 'allocate' first, as --stop-after allocated does)
glow_high.func @graph(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = glow_high.relu %x : tensor<4xf32>
  glow_high.return %y
}

// -----

// CHECK: glow-low-to-scf-errors.mlir:14:1: error: @buffers is not allocated (hint:
glow_low.func @buffers(@in %x: memref<4xf32>, @out %y: memref<4xf32>) {
  glow_low.copy @out %y, @in %x {kernel = "copy"}
}

// -----

// CHECK: glow-low-to-scf-errors.mlir:21:1: error: no entry is called 'parallel_for' (hint: machine code defines a function of that name)
glow_low.func @parallel_for() attributes {activations = 0, activations_bound = 0, constants = 0} {
}
