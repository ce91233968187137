// The order of operators is the schedule: the one in which least memory is live, or one of Glow's two.

// RUN: glow-opt %s -p schedule --split-input-file | filecheck %s
// RUN: glow-opt %s -p schedule --split-input-file | filecheck %s --check-prefix LEAST
// RUN: glow-opt %s -p schedule{order=child-size} --split-input-file | filecheck %s --check-prefix CHILD
// RUN: glow-opt %s -p schedule{order=topological} --split-input-file | filecheck %s --check-prefix TOPOLOGICAL

// The large branch is computed and reduced before the small one exists; the topological order takes the first operand
// first, whatever memory that needs.

// TOPOLOGICAL-LABEL: glow_high.func @branches(
// TOPOLOGICAL:         glow_high.abs
// TOPOLOGICAL-NEXT:    glow_high.expand

// CHECK-LABEL: glow_high.func @branches(
// CHECK:         glow_high.expand
// CHECK-NEXT:    glow_high.neg %{{.*}} : tensor<64x4xf32>
// CHECK-NEXT:    glow_high.reduce_sum
// CHECK-NEXT:    glow_high.abs
// CHECK-NEXT:    glow_high.add
glow_high.func @branches(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %small = glow_high.abs %x : tensor<1x4xf32>
  %large = glow_high.expand %x {shape = [64, 4]} : tensor<64x4xf32>
  %1 = glow_high.neg %large : tensor<64x4xf32>
  %2 = glow_high.reduce_sum %1 {axes = [0]} : tensor<1x4xf32>
  %3 = glow_high.add %small, %2 : tensor<1x4xf32>
  glow_high.return %3
}

// -----

// An operator moves to its first user; saves keep their order, and what nobody uses stays.

// CHECK-LABEL: glow_high.func @saves(
// CHECK:         %[[A:.*]] = glow_high.abs
// CHECK-NEXT:    glow_high.save %[[A]], @y
// CHECK-NEXT:    %[[B:.*]] = glow_high.neg
// CHECK-NEXT:    glow_high.save %[[B]], @z
// CHECK-NEXT:    glow_high.exp
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @z : tensor<4xf32> {output}
glow_high.func @saves(@x, @y, @z) {
  %x = glow_high.get @x : tensor<4xf32>
  %b = glow_high.neg %x : tensor<4xf32>
  %a = glow_high.abs %x : tensor<4xf32>
  glow_high.save %a, @y
  glow_high.save %b, @z
  %unused = glow_high.exp %x : tensor<4xf32>
}

// -----

// State: the old value is read before the save, the new one after it, and what needs the old one comes first.

// CHECK-LABEL: glow_high.func @state(
// CHECK:         %old = glow_high.get @s {mutable}
// CHECK:         %[[Y:.*]] = glow_high.neg %old
// CHECK-NEXT:    glow_high.save %[[Y]], @y
// CHECK:         glow_high.save %{{.*}}, @s
// CHECK-NEXT:    %new = glow_high.get @s {mutable}
// CHECK-NEXT:    glow_high.save %new, @z
glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @z : tensor<4xf32> {output}
glow_high.func @state(@s, @x, @y, @z) {
  %x = glow_high.get @x : tensor<4xf32>
  %old = glow_high.get @s {mutable} : tensor<4xf32>
  %1 = glow_high.add %old, %x : tensor<4xf32>
  glow_high.save %1, @s
  %2 = glow_high.neg %old : tensor<4xf32>
  glow_high.save %2, @y
  %new = glow_high.get @s {mutable} : tensor<4xf32>
  glow_high.save %new, @z
}

// -----

// What is done with one large tensor first, all of it: Glow's orders follow its first user up to the save, and keep it
// while the next large tensor is computed.

// LEAST-LABEL: glow_high.func @early(
// LEAST:         glow_high.expand
// LEAST-NEXT:    glow_high.reduce_max
// LEAST-NEXT:    glow_high.save
// LEAST-NEXT:    glow_high.reduce_sum
// LEAST-NEXT:    glow_high.expand
// CHILD-LABEL: glow_high.func @early(
// CHILD:         glow_high.expand
// CHILD-NEXT:    glow_high.reduce_sum
// CHILD-NEXT:    glow_high.expand
// CHILD:         glow_high.reduce_max
glow_high.func @early(%x: tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  %large = glow_high.expand %x {shape = [64, 4]} : tensor<64x4xf32>
  %sum = glow_high.reduce_sum %large {axes = [0]} : tensor<1x4xf32>
  %max = glow_high.reduce_max %large {axes = [0]} : tensor<1x4xf32>
  %other = glow_high.expand %sum {shape = [64, 4]} : tensor<64x4xf32>
  %1 = glow_high.reduce_min %other {axes = [0]} : tensor<1x4xf32>
  glow_high.return %1, %max
}
