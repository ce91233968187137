// Each device has some samples of a batch.

// RUN: glow-opt %s --split-input-file -p 'assign-devices{devices="interpreter,interpreter"},split-batch,fold-constants,remove-unused-storage' | filecheck %s
// RUN: glow-opt %s --split-input-file -p 'assign-devices{devices=interpreter},split-batch' | filecheck %s --check-prefix=ONE
// ONE-NOT: glow_high.slice

// Shares differ by one sample at most. What does not depend on the batch is there once, and cut where it is as large.
glow_high.constant @w : tensor<4x4xf32> {value = dense<0.5> : tensor<4x4xf32>}
glow_high.constant @each : tensor<5x4xf32> {value = dense<0.25> : tensor<5x4xf32>}
glow_high.placeholder @x : tensor<5x4xf32> {input}
glow_high.placeholder @m : tensor<1x4xf32> {input}
glow_high.placeholder @y : tensor<5x4xf32> {output}
glow_high.placeholder @z : tensor<1x4xf32> {output}
// CHECK: func @main
// CHECK: %m = glow_high.get @m
// CHECK: %e = glow_high.exp %m : tensor<1x4xf32>
// CHECK: %[[X0:[0-9]+]] = glow_high.slice %x {starts = [0, 0], ends = [3, 4], glow.device = "interpreter:0"} : tensor<3x4xf32>
// CHECK-NEXT: %[[P0:[0-9]+]] = glow_high.matmul %[[X0]], %w {glow.device = "interpreter:0"} : tensor<3x4xf32>
// CHECK-NEXT: %[[X1:[0-9]+]] = glow_high.slice %x {starts = [3, 0], ends = [5, 4], glow.device = "interpreter:1"} : tensor<2x4xf32>
// CHECK-NEXT: %[[P1:[0-9]+]] = glow_high.matmul %[[X1]], %w {glow.device = "interpreter:1"} : tensor<2x4xf32>
// CHECK-NEXT: %[[S0:[0-9]+]] = glow_high.add %[[P0]], %e {glow.device = "interpreter:0"} : tensor<3x4xf32>
// CHECK-NEXT: %[[S1:[0-9]+]] = glow_high.add %[[P1]], %e {glow.device = "interpreter:1"} : tensor<2x4xf32>
// CHECK-NEXT: %[[C0:[0-9]+]] = glow_high.get {{.*}} : tensor<3x4xf32>
// CHECK-NEXT: %[[R0:[0-9]+]] = glow_high.mul %[[S0]], %[[C0]] {glow.device = "interpreter:0"} : tensor<3x4xf32>
// CHECK-NEXT: %[[C1:[0-9]+]] = glow_high.get {{.*}} : tensor<2x4xf32>
// CHECK-NEXT: %[[R1:[0-9]+]] = glow_high.mul %[[S1]], %[[C1]] {glow.device = "interpreter:1"} : tensor<2x4xf32>
// CHECK-NEXT: %[[R:[0-9]+]] = glow_high.concat %[[R0]], %[[R1]] {axis = 0} : tensor<5x4xf32>
// CHECK-NEXT: glow_high.save %[[R]], @y
// CHECK-NEXT: glow_high.save %e, @z
glow_high.func @main(@x, @m, @y, @z) {
  %x = glow_high.get @x : tensor<5x4xf32>
  %m = glow_high.get @m : tensor<1x4xf32>
  %w = glow_high.get @w : tensor<4x4xf32>
  %c = glow_high.get @each : tensor<5x4xf32>
  %e = glow_high.exp %m : tensor<1x4xf32>
  %0 = glow_high.matmul %x, %w : tensor<5x4xf32>
  %1 = glow_high.add %0, %e : tensor<5x4xf32>
  %2 = glow_high.mul %1, %c : tensor<5x4xf32>
  glow_high.save %2, @y
  glow_high.save %e, @z
}

// -----

// Samples are followed through shapes and axes: sequences that become rows, and an axis in between.
glow_high.placeholder @x : tensor<4x3x2xf32> {input}
glow_high.placeholder @y : tensor<2x12xf32> {output}
// CHECK: func @main
// CHECK: %[[X0:.*]] = glow_high.slice %x {{.*}} : tensor<2x3x2xf32>
// CHECK: glow_high.reshape %[[X0]] {shape = [6, 2], glow.device = "interpreter:0"} : tensor<6x2xf32>
// CHECK: %[[T0:.*]] = glow_high.transpose {{.*}} {permutation = [1, 0], glow.device = "interpreter:0"} : tensor<2x6xf32>
// CHECK: %[[T1:.*]] = glow_high.transpose {{.*}} {permutation = [1, 0], glow.device = "interpreter:1"} : tensor<2x6xf32>
// CHECK: glow_high.concat %[[T0]], %[[T1]] {axis = 1} : tensor<2x12xf32>
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4x3x2xf32>
  %0 = glow_high.reshape %x {shape = [12, 2]} : tensor<12x2xf32>
  %1 = glow_high.transpose %0 {permutation = [1, 0]} : tensor<2x12xf32>
  glow_high.save %1, @y
}

// -----

// All samples twice, one after the other: each device has its own of both.
glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @y : tensor<4x3xf32> {output}
// CHECK: func @main
// CHECK: %[[A0:.*]] = glow_high.concat %[[X0:.*]], %[[X0]] {axis = 0, glow.device = "interpreter:0"} : tensor<2x3xf32>
// CHECK: %[[A1:.*]] = glow_high.concat %[[X1:.*]], %[[X1]] {axis = 0, glow.device = "interpreter:1"} : tensor<2x3xf32>
// CHECK: %[[B0:.*]] = glow_high.reshape %[[A0]] {shape = [2, 1, 3]}
// CHECK: %[[B1:.*]] = glow_high.reshape %[[A1]] {shape = [2, 1, 3]}
// CHECK: %[[B:.*]] = glow_high.concat %[[B0]], %[[B1]] {axis = 1} : tensor<2x2x3xf32>
// CHECK: glow_high.reshape %[[B]] {shape = [4, 3]} : tensor<4x3xf32>
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %0 = glow_high.concat %x, %x {axis = 0} : tensor<4x3xf32>
  glow_high.save %0, @y
}

// -----

// What is on a device already stays whole: it reads what is joined, and others read their part of it.
glow_high.placeholder @x : tensor<4x3xf32> {input}
glow_high.placeholder @y : tensor<4x3xf32> {output}
// CHECK: func @main
// CHECK: %[[J:.*]] = glow_high.concat {{.*}} {axis = 0} : tensor<4x3xf32>
// CHECK: %[[W:.*]] = glow_high.tanh %[[J]] {glow.device = "interpreter:1"} : tensor<4x3xf32>
// CHECK: %[[W0:.*]] = glow_high.slice %[[W]] {starts = [0, 0], ends = [2, 3], glow.device = "interpreter:0"} : tensor<2x3xf32>
// CHECK: glow_high.neg %[[W0]] {glow.device = "interpreter:0"} : tensor<2x3xf32>
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4x3xf32>
  %0 = glow_high.exp %x : tensor<4x3xf32>
  %1 = glow_high.tanh %0 {glow.device = "interpreter:1"} : tensor<4x3xf32>
  %2 = glow_high.neg %1 : tensor<4x3xf32>
  glow_high.save %2, @y
}
