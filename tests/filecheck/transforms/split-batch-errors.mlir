// What devices cannot share of a batch is told, with its place and the name of the node.

// RUN: not glow-opt %s --split-input-file -p 'assign-devices{devices="interpreter,interpreter"},split-batch' 2>&1 | filecheck %s

// CHECK: split-batch-errors.mlir:{{[0-9]+:[0-9]+}}: error: node 'total': glow_high.reduce_sum mixes the 4 samples of the batch, so devices cannot share it (hint: partition='latency' or 'pipeline' splits a model otherwise)
glow_high.placeholder @x : tensor<4x3xf32> {input}
glow_high.placeholder @y : tensor<1x3xf32> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4x3xf32>
  %r = glow_high.relu %x : tensor<4x3xf32>
  %0 = glow_high.reduce_sum %r {axes = [0]} : tensor<1x3xf32> loc("total")
  glow_high.save %0, @y
}

// -----

// CHECK: split-batch-errors.mlir:{{[0-9]+:[0-9]+}}: error: state @s depends on the samples of the batch, and is on one device
glow_high.placeholder @x : tensor<4x3xf32> {input}
glow_high.placeholder @s : tensor<4x3xf32> {state}
glow_high.func @main(@x, @s) {
  %x = glow_high.get @x : tensor<4x3xf32>
  %s = glow_high.get @s {mutable} : tensor<4x3xf32>
  %0 = glow_high.add %x, %s : tensor<4x3xf32>
  glow_high.save %0, @s
}

// -----

// CHECK: split-batch-errors.mlir:{{[0-9]+:[0-9]+}}: error: @main has a batch of one sample, which devices cannot share (hint: a larger first size of the inputs, as --bind gives one; partition='latency' or 'pipeline' splits a model otherwise)
glow_high.placeholder @x : tensor<1x3xf32> {input}
glow_high.placeholder @y : tensor<1x3xf32> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<1x3xf32>
  %0 = glow_high.relu %x : tensor<1x3xf32>
  glow_high.save %0, @y
}

// -----

// CHECK: split-batch-errors.mlir:{{[0-9]+:[0-9]+}}: error: glow_high.if depends on the samples of the batch, and devices cannot share it
glow_high.placeholder @x : tensor<4x3xf32> {input}
glow_high.placeholder @c : tensor<i1> {input}
glow_high.placeholder @y : tensor<4x3xf32> {output}
glow_high.func @main(@x, @c, @y) {
  %x = glow_high.get @x : tensor<4x3xf32>
  %c = glow_high.get @c : tensor<i1>
  %0 = glow_high.if %c {
    %1 = glow_high.relu %x : tensor<4x3xf32>
    glow_high.yield %1
  } else {
    glow_high.yield %x
  } : tensor<4x3xf32>
  glow_high.save %0, @y
}
