// The log tells for each node which pass did what with its operators.

// RUN: glow-opt %s --stage allocated --compilation-log %t.txt -o /dev/null
// RUN: filecheck %s < %t.txt
// RUN: glow-opt %s --stage optimized --compilation-log - --log-nodes 'n?rm' -o /dev/null 2>&1 | filecheck %s --check-prefix=SOME
// RUN: glow-opt %s --stage optimized --compilation-log %t.json --log-nodes 'norm' -o /dev/null
// RUN: filecheck %s --check-prefix=JSON < %t.json
// RUN: not glow-opt %s --stage optimized --compilation-log /no/such/folder/x 2>&1 | filecheck %s --check-prefix=ERROR

glow_high.placeholder @x : tensor<1x4x4x2xf32> {input}
glow_high.placeholder @y : tensor<1x4x4x3xf32> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<1x4x4x2xf32> loc("x")
  %f = glow_high.splat {value = 0.5} : tensor<3x1x1x2xf32> loc("conv")
  %c = glow_high.conv %x, %f : tensor<1x4x4x3xf32> loc("conv")
  %1 = glow_high.splat {value = 2.0} : tensor<3xf32> loc("norm")
  %b = glow_high.batch_normalization %c, %1, %1, %1, %1 {axis = -1} : tensor<1x4x4x3xf32> loc("norm")
  %u = glow_high.relu %b : tensor<1x4x4x3xf32> loc("unused")
  %r = glow_high.relu %b : tensor<1x4x4x3xf32> loc("relu")
  glow_high.save %r, @y loc("relu")
}

// CHECK:      node 'conv'
// CHECK-NEXT:   0 before all passes
// CHECK-NEXT:     found glow_high.splat : tensor<3x1x1x2xf32>
// CHECK-NEXT:     found glow_high.conv : tensor<1x4x4x3xf32>
// CHECK-NEXT: {{[0-9]+}} fold-into-weights
// CHECK-DAG:      merged glow_high.conv : tensor<1x4x4x3xf32> into glow_high.conv
// CHECK-DAG:      created glow_high.conv : tensor<1x4x4x3xf32> from 'conv', 'norm'
// CHECK:      {{[0-9]+}} select
// CHECK:        changed glow_low.conv : {{.*}}kernel = "{{.*}}"
// CHECK:      {{[0-9]+}} allocate
// CHECK:      node 'norm'
// CHECK:        merged glow_high.batch_normalization : tensor<1x4x4x3xf32> into glow_high.conv
// CHECK:      node 'unused'
// CHECK-NEXT:   0 before all passes
// CHECK-NEXT:     found glow_high.relu
// CHECK-NEXT:   4 canonicalize
// CHECK-NEXT:     removed glow_high.relu
// CHECK-NEXT: node 'relu'
// CHECK:        changed glow_high.relu : tensor<1x4x4x3xf32> operand 0 = glow_high.conv of 'conv', 'norm' (was glow_high.batch_normalization of 'norm')

// SOME-NOT: node 'conv'
// SOME: node 'norm'
// SOME-NOT: node

// JSON: "format": 1
// JSON: "norm": [
// JSON: "pass_name": "fold-into-weights"
// JSON: "what": "merged"
// JSON: "op": "glow_high.batch_normalization"

// ERROR: /no/such/folder/x: error: cannot be written: No such file or directory
