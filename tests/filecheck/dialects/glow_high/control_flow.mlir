// Branches and loops over operators, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @flag : tensor<i1> {input}
glow_high.placeholder @n : tensor<i64> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @z : tensor<4xf32> {output}

// CHECK-LABEL: glow_high.func @branch(@x, @flag, @y, @z)
// CHECK:         %[[A:.*]], %[[B:.*]] = glow_high.if %flag {
// CHECK-NEXT:      %[[R:.*]] = glow_high.relu %x : tensor<4xf32>
// CHECK-NEXT:      glow_high.yield %[[R]], %x
// CHECK-NEXT:    } else {
// CHECK-NEXT:      glow_high.yield %x, %x
// CHECK-NEXT:    } : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:    glow_high.save %[[A]], @y
// CHECK-NEXT:    glow_high.save %[[B]], @z
glow_high.func @branch(@x, @flag, @y, @z) {
  %x = glow_high.get @x : tensor<4xf32>
  %flag = glow_high.get @flag : tensor<i1>
  %a, %b = glow_high.if %flag {
    %0 = glow_high.relu %x : tensor<4xf32>
    glow_high.yield %0, %x
  } else {
    glow_high.yield %x, %x
  } : tensor<4xf32>, tensor<4xf32>
  glow_high.save %a, @y
  glow_high.save %b, @z
}

// CHECK-LABEL: glow_high.func @loops(@x, @flag, @n, @y)
// CHECK:         %[[A:.*]] = glow_high.loop %{{.*}} = 3 (%[[C:.*]] = %x) {
// CHECK-NEXT:      %[[E:.*]] = glow_high.exp %[[C]] : tensor<4xf32>
// CHECK-NEXT:      glow_high.yield %[[E]]
// CHECK-NEXT:    } : tensor<4xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.loop %[[I:.*]] = %n while %flag (%[[C:.*]] = %[[A]]) {
// CHECK-NEXT:      %[[F:.*]] = glow_high.cast %[[I]] {to = f32} : tensor<f32>
// CHECK-NEXT:      %[[G:.*]] = glow_high.add %[[C]], %[[F]] : tensor<4xf32>
// CHECK-NEXT:      %[[H:.*]] = glow_high.not %flag : tensor<i1>
// CHECK-NEXT:      glow_high.yield %[[H]], %[[G]]
// CHECK-NEXT:    } : tensor<4xf32>
// CHECK-NEXT:    glow_high.loop %{{.*}} while %flag {
// CHECK-NEXT:      %[[H:.*]] = glow_high.not %flag : tensor<i1>
// CHECK-NEXT:      glow_high.yield %[[H]]
// CHECK-NEXT:    }
glow_high.func @loops(@x, @flag, @n, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %flag = glow_high.get @flag : tensor<i1>
  %n = glow_high.get @n : tensor<i64>
  %a = glow_high.loop %i = 3 (%c = %x) {
    %0 = glow_high.exp %c : tensor<4xf32>
    glow_high.yield %0
  } : tensor<4xf32>
  %b = glow_high.loop %i = %n while %flag (%c = %a) {
    %0 = glow_high.cast %i {to = f32} : tensor<f32>
    %1 = glow_high.add %c, %0 : tensor<4xf32>
    %2 = glow_high.not %flag : tensor<i1>
    glow_high.yield %2, %1
  } : tensor<4xf32>
  glow_high.loop %i while %flag {
    %0 = glow_high.not %flag : tensor<i1>
    glow_high.yield %0
  }
  glow_high.save %b, @y
}
