// Operations that compute what an earlier one has computed are that one.

// RUN: glow-opt %s -p cse --split-input-file | filecheck %s

// Operators are equal where what they read is, at once or because it is one by now; their names differ.

// CHECK-LABEL: glow_high.func @equal(
// CHECK:         %[[E:.*]] = glow_high.exp %x
// CHECK-NEXT:    %[[S:.*]] = glow_high.add %[[E]], %[[E]]
// CHECK-NEXT:    glow_high.save %[[S]], @y
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.func @equal(@x, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %again = glow_high.get @x : tensor<4xf32>
  %a = glow_high.exp %x : tensor<4xf32>
  %b = glow_high.exp %again : tensor<4xf32>
  %unused = glow_high.neg %b : tensor<4xf32>
  %c = glow_high.add %a, %b : tensor<4xf32>
  glow_high.save %c, @y
}

// -----

// Other properties, types or operands make others.

// CHECK-LABEL: glow_high.func @others(
// CHECK:         glow_high.splat {value = 1.0}
// CHECK-NEXT:    glow_high.splat {value = 2.0}
// CHECK-NEXT:    glow_high.sub
// CHECK-NEXT:    glow_high.sub
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @z : tensor<4xf32> {output}
glow_high.func @others(@y, @z) {
  %a = glow_high.splat {value = 1.0} : tensor<4xf32>
  %b = glow_high.splat {value = 2.0} : tensor<4xf32>
  %c = glow_high.sub %a, %b : tensor<4xf32>
  %d = glow_high.sub %b, %a : tensor<4xf32>
  glow_high.save %c, @y
  glow_high.save %d, @z
}

// -----

// State is read again behind what writes it, and once where nothing does.

// CHECK-LABEL: glow_high.func @state(
// CHECK:         %[[FIRST:.*]] = glow_high.get @s
// CHECK-NEXT:    %[[SUM:.*]] = glow_high.add %[[FIRST]], %[[FIRST]]
// CHECK-NEXT:    glow_high.save %[[SUM]], @s
// CHECK-NEXT:    %[[SECOND:.*]] = glow_high.get @s
// CHECK-NEXT:    glow_high.save %[[SECOND]], @y
glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.func @state(@s, @y) {
  %a = glow_high.get @s {mutable} : tensor<4xf32>
  %b = glow_high.get @s {mutable} : tensor<4xf32>
  %c = glow_high.add %a, %b : tensor<4xf32>
  glow_high.save %c, @s
  %d = glow_high.get @s {mutable} : tensor<4xf32>
  glow_high.save %d, @y
}
