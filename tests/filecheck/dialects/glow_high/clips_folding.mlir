// Operators that limit elements to a range become one, and the simplest for that range.

// RUN: glow-opt %s -p canonicalize | filecheck %s

glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @y : tensor<2x3xf32> {output}
glow_high.placeholder @z : tensor<2x3xf32> {output}
glow_high.placeholder @w : tensor<4x2x3xf32> {output}

// CHECK-LABEL: glow_high.func @clip_of_clip(
// CHECK-NEXT:    %[[L:.*]] = glow_high.splat {value = 0.0} : tensor<f32>
// CHECK-NEXT:    %[[H:.*]] = glow_high.splat {value = 2.0} : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.clip %x, %[[L]], %[[H]] : tensor<2x3xf32>
// CHECK-NEXT:    glow_high.return %[[C]]
glow_high.func @clip_of_clip(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %l = glow_high.splat {value = 0.0} : tensor<f32>
  %h = glow_high.splat {value = 6.0} : tensor<f32>
  %2 = glow_high.splat {value = 2.0} : tensor<f32>
  %3 = glow_high.clip %x, %l, %h : tensor<2x3xf32>
  %4 = glow_high.clip %3, none, %2 : tensor<2x3xf32>
  glow_high.return %4
}

// Ranges that are apart leave one number, and NaN.
// CHECK-LABEL: glow_high.func @apart(
// CHECK-NEXT:    %[[L:.*]] = glow_high.splat {value = 8.0} : tensor<f32>
// CHECK-NEXT:    %[[H:.*]] = glow_high.splat {value = 8.0} : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.clip %x, %[[L]], %[[H]] : tensor<2x3xf32>
// CHECK-NEXT:    glow_high.return %[[C]]
glow_high.func @apart(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %l = glow_high.splat {value = 0.0} : tensor<f32>
  %h = glow_high.splat {value = 6.0} : tensor<f32>
  %m = glow_high.splat {value = 8.0} : tensor<f32>
  %0 = glow_high.clip %x, %l, %h : tensor<2x3xf32>
  %1 = glow_high.clip %0, %m : tensor<2x3xf32>
  glow_high.return %1
}

// Maximum and minimum with a number are clips, and at zero a ReLU.
// CHECK-LABEL: glow_high.func @max_and_min(
// CHECK-NEXT:    %x = glow_high.get @x
// CHECK-NEXT:    %[[L:.*]] = glow_high.splat {value = -1.0} : tensor<f32>
// CHECK-NEXT:    %[[H:.*]] = glow_high.splat {value = 1.0} : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.clip %x, %[[L]], %[[H]] : tensor<2x3xf32>
// CHECK-NEXT:    glow_high.save %[[C]], @y
// CHECK-NEXT:    %[[R:.*]] = glow_high.relu %x : tensor<2x3xf32>
// CHECK-NEXT:    glow_high.save %[[R]], @z
glow_high.func @max_and_min(@x, @y, @z) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %l = glow_high.splat {value = -1.0} : tensor<1x3xf32>
  %h = glow_high.splat {value = 1.0} : tensor<f32>
  %0 = glow_high.min %h, %x : tensor<2x3xf32>
  %1 = glow_high.max %0, %l : tensor<2x3xf32>
  glow_high.save %1, @y
  %o = glow_high.splat {value = 0.0} : tensor<f32>
  %2 = glow_high.max %o, %x : tensor<2x3xf32>
  %3 = glow_high.relu %2 : tensor<2x3xf32>
  glow_high.save %3, @z
}

// What limits no more than the one before is gone; a clip without limits is nothing.
// CHECK-LABEL: glow_high.func @needless(
// CHECK-NEXT:    %x = glow_high.get @x
// CHECK-NEXT:    %h = glow_high.splat {value = 6.0} : tensor<f32>
// CHECK-NEXT:    %l = glow_high.splat {value = 0.0} : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.clip %x, %l, %h : tensor<2x3xf32>
// CHECK-NEXT:    glow_high.save %[[C]], @y
// CHECK-NEXT:    glow_high.save %[[C]], @z
glow_high.func @needless(@x, @y, @z) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %h = glow_high.splat {value = 6.0} : tensor<f32>
  %l = glow_high.splat {value = 0.0} : tensor<f32>
  %i = glow_high.splat {value = inf} : tensor<f32>
  %0 = glow_high.clip %x, none, %i : tensor<2x3xf32>
  %1 = glow_high.clip %0 : tensor<2x3xf32>
  %2 = glow_high.clip %1, %l, %h : tensor<2x3xf32>
  glow_high.save %2, @y
  %3 = glow_high.relu %2 : tensor<2x3xf32>
  %4 = glow_high.clip %3, none, %h : tensor<2x3xf32>
  glow_high.save %4, @z
}

// What something else reads stays, and so do limits that are no numbers, NaN, or change the shape.
// CHECK-LABEL: glow_high.func @stay(
// CHECK:         %[[R:.*]] = glow_high.relu %x
// CHECK-NEXT:    glow_high.save %[[R]], @y
// CHECK-NEXT:    %[[C:.*]] = glow_high.clip %[[R]], none, %h
// CHECK-NEXT:    %[[M:.*]] = glow_high.max %[[C]], %nan
// CHECK-NEXT:    glow_high.save %[[M]], @z
// CHECK-NEXT:    %[[A:.*]] = glow_high.clip %[[M]], %l
// CHECK-NEXT:    %[[W:.*]] = glow_high.max %[[A]], %o : tensor<4x2x3xf32>
// CHECK-NEXT:    glow_high.save %[[W]], @w
glow_high.func @stay(@x, @y, @z, @w) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %h = glow_high.splat {value = 6.0} : tensor<f32>
  %nan = glow_high.splat {value = nan} : tensor<f32>
  %l = glow_high.exp %h : tensor<f32>
  %o = glow_high.splat {value = 0.0} : tensor<4x2x3xf32>
  %0 = glow_high.relu %x : tensor<2x3xf32>
  glow_high.save %0, @y
  %1 = glow_high.clip %0, none, %h : tensor<2x3xf32>
  %2 = glow_high.max %1, %nan : tensor<2x3xf32>
  glow_high.save %2, @z
  %3 = glow_high.clip %2, %l : tensor<2x3xf32>
  %4 = glow_high.max %3, %o : tensor<4x2x3xf32>
  glow_high.save %4, @w
}

// Integers; where limits cross, the upper one wins.
// CHECK-LABEL: glow_high.func @integers(
// CHECK:         %[[L:.*]] = glow_high.splat {value = -5 : i32} : tensor<i32>
// CHECK-NEXT:    %[[H:.*]] = glow_high.splat {value = -5 : i32} : tensor<i32>
// CHECK-NEXT:    %[[C:.*]] = glow_high.clip %n, %[[L]], %[[H]] : tensor<2x3xi32>
// CHECK-NEXT:    glow_high.return %[[C]]
glow_high.func @integers(%n: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %l = glow_high.splat {value = 7 : i32} : tensor<i32>
  %h = glow_high.splat {value = -5 : i32} : tensor<i32>
  %0 = glow_high.clip %n, %l, %h : tensor<2x3xi32>
  glow_high.return %0
}
