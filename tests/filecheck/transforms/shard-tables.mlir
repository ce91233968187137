// Each device has some rows of a table, and looks up the indices that are among them.

// RUN: glow-opt %s -p 'assign-devices{devices="interpreter,interpreter"},shard-tables{least=100},fold-constants,remove-unused-storage' | filecheck %s
// RUN: glow-opt %s -p 'assign-devices{devices="interpreter,interpreter"},shard-tables' | filecheck %s --check-prefix=SMALL
// SMALL-NOT: where

glow_high.constant @table : tensor<9x4xf32> {value = dense<0.5> : tensor<9x4xf32>}
// CHECK: func @main
glow_high.func @main(%ids: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
  // CHECK: glow_high.gather {{.*}} {glow.device = "interpreter:0"} : tensor<2x3x4xf32>
  // CHECK: glow_high.gather {{.*}} {glow.device = "interpreter:1"} : tensor<2x3x4xf32>
  // CHECK: glow_high.reshape {{.*}} {shape = [2, 3, 1]} : tensor<2x3x1xi1>
  // CHECK: glow_high.where {{.*}} : tensor<2x3x4xf32>
  %table = glow_high.get @table : tensor<9x4xf32>
  %0 = glow_high.gather %table, %ids {axis = 0} : tensor<2x3x4xf32>
  glow_high.return %0
}
