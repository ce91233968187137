// Without a name, the pipeline is that of the backend that the module names.

// RUN: not glow-opt %s --stop-after selected 2>&1 | filecheck %s --check-prefix=STAGE
// RUN: glow-opt %s --stop-after optimized --dump-pass-pipeline 2>&1 -o /dev/null | filecheck %s --check-prefix=PIPELINE
// RUN: glow-opt %s --stop-after optimized | filecheck %s

// STAGE: no stage 'selected'
// STAGE-SAME: imported, differentiated, optimized

// PIPELINE: assign-target{backend="interpreter"}

// CHECK: backend = "interpreter"
glow_high.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {target = #glow.target<backend = "interpreter">} {
  %y = glow_high.relu %x : tensor<4xf32>
  glow_high.return %y
}
