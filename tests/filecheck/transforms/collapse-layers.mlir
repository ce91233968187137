// Of equal layers in a row, the first ones stay, with constants whose elements no pass can read.

// RUN: glow-opt %s -p 'collapse-layers{kept=2 least=4}' --split-input-file | filecheck %s

// The layers differ in their weights, and each writes an output of its own.

// CHECK-LABEL: builtin.module attributes {glow.layers
// CHECK-SAME:    omitted = #builtin.int<2>
// CHECK-SAME:    placeholders = [["y0", "y1", "y2", "y3"]]
// CHECK:         glow_high.constant @w0 : tensor<2x2xf32> {weights =
// CHECK-NEXT:    glow_high.constant @w1 : tensor<2x2xf32> {weights =
// CHECK-NOT:     @w2
// CHECK:         glow_high.func @layers
// CHECK:           %[[A:.*]] = glow_high.relu
// CHECK:           %[[W:.*]] = glow_high.get @w1
// CHECK-NEXT:      %[[P:.*]] = glow_high.matmul %[[A]], %[[W]]
// CHECK-NEXT:      %[[B:.*]] = glow_high.relu %[[P]]
// CHECK-NOT:       glow_high.relu
// CHECK:           glow_high.save %[[B]], @y1
// CHECK-NEXT:      %[[T:.*]] = glow_high.tanh %[[B]]
// CHECK-NEXT:      glow_high.save %[[T]], @z
glow_high.placeholder @x : tensor<1x2xf32> {input}
glow_high.constant @w0 : tensor<2x2xf32> {value = dense<[[0.5, 1.0], [2.0, 0.25]]> : tensor<2x2xf32>}
glow_high.constant @w1 : tensor<2x2xf32> {value = dense<[[1.5, 1.0], [2.0, 1.25]]> : tensor<2x2xf32>}
glow_high.constant @w2 : tensor<2x2xf32> {value = dense<[[2.5, 1.0], [2.0, 2.25]]> : tensor<2x2xf32>}
glow_high.constant @w3 : tensor<2x2xf32> {value = dense<[[3.5, 1.0], [2.0, 3.25]]> : tensor<2x2xf32>}
glow_high.placeholder @y0 : tensor<1x2xf32> {output}
glow_high.placeholder @y1 : tensor<1x2xf32> {output}
glow_high.placeholder @y2 : tensor<1x2xf32> {output}
glow_high.placeholder @y3 : tensor<1x2xf32> {output}
glow_high.placeholder @z : tensor<1x2xf32> {output}
glow_high.func @layers(@x, @y0, @y1, @y2, @y3, @z) {
  %x = glow_high.get @x : tensor<1x2xf32>
  %s = glow_high.sigmoid %x : tensor<1x2xf32>
  %w0 = glow_high.get @w0 : tensor<2x2xf32>
  %p0 = glow_high.matmul %s, %w0 : tensor<1x2xf32>
  %r0 = glow_high.relu %p0 : tensor<1x2xf32>
  glow_high.save %r0, @y0
  %w1 = glow_high.get @w1 : tensor<2x2xf32>
  %p1 = glow_high.matmul %r0, %w1 : tensor<1x2xf32>
  %r1 = glow_high.relu %p1 : tensor<1x2xf32>
  glow_high.save %r1, @y1
  %w2 = glow_high.get @w2 : tensor<2x2xf32>
  %p2 = glow_high.matmul %r1, %w2 : tensor<1x2xf32>
  %r2 = glow_high.relu %p2 : tensor<1x2xf32>
  glow_high.save %r2, @y2
  %w3 = glow_high.get @w3 : tensor<2x2xf32>
  %p3 = glow_high.matmul %r2, %w3 : tensor<1x2xf32>
  %r3 = glow_high.relu %p3 : tensor<1x2xf32>
  glow_high.save %r3, @y3
  %t = glow_high.tanh %r3 : tensor<1x2xf32>
  glow_high.save %t, @z
}

// -----

// An early layer's result is read behind the last one: layers are not alike to those who read them.

// CHECK-LABEL: builtin.module {
// CHECK:         glow_high.func @skips
// CHECK-COUNT-4:   glow_high.relu
glow_high.placeholder @x : tensor<1x2xf32> {input}
glow_high.constant @w0 : tensor<2x2xf32> {value = dense<[[0.5, 1.0], [2.0, 0.25]]> : tensor<2x2xf32>}
glow_high.constant @w1 : tensor<2x2xf32> {value = dense<[[1.5, 1.0], [2.0, 1.25]]> : tensor<2x2xf32>}
glow_high.constant @w2 : tensor<2x2xf32> {value = dense<[[2.5, 1.0], [2.0, 2.25]]> : tensor<2x2xf32>}
glow_high.constant @w3 : tensor<2x2xf32> {value = dense<[[3.5, 1.0], [2.0, 3.25]]> : tensor<2x2xf32>}
glow_high.placeholder @z : tensor<1x2xf32> {output}
glow_high.func @skips(@x, @z) {
  %x = glow_high.get @x : tensor<1x2xf32>
  %s = glow_high.sigmoid %x : tensor<1x2xf32>
  %w0 = glow_high.get @w0 : tensor<2x2xf32>
  %p0 = glow_high.matmul %s, %w0 : tensor<1x2xf32>
  %r0 = glow_high.relu %p0 : tensor<1x2xf32>
  %w1 = glow_high.get @w1 : tensor<2x2xf32>
  %p1 = glow_high.matmul %r0, %w1 : tensor<1x2xf32>
  %r1 = glow_high.relu %p1 : tensor<1x2xf32>
  %w2 = glow_high.get @w2 : tensor<2x2xf32>
  %p2 = glow_high.matmul %r1, %w2 : tensor<1x2xf32>
  %r2 = glow_high.relu %p2 : tensor<1x2xf32>
  %w3 = glow_high.get @w3 : tensor<2x2xf32>
  %p3 = glow_high.matmul %r2, %w3 : tensor<1x2xf32>
  %r3 = glow_high.relu %p3 : tensor<1x2xf32>
  %t = glow_high.add %r1, %r3 : tensor<1x2xf32>
  glow_high.save %t, @z
}

// -----

// A layer of another form among them.

// CHECK-LABEL: builtin.module {
// CHECK:         glow_high.func @differs
// CHECK-COUNT-3:   glow_high.relu
glow_high.placeholder @x : tensor<1x2xf32> {input}
glow_high.constant @w0 : tensor<2x2xf32> {value = dense<[[0.5, 1.0], [2.0, 0.25]]> : tensor<2x2xf32>}
glow_high.constant @w1 : tensor<2x2xf32> {value = dense<[[1.5, 1.0], [2.0, 1.25]]> : tensor<2x2xf32>}
glow_high.constant @w2 : tensor<2x2xf32> {value = dense<[[2.5, 1.0], [2.0, 2.25]]> : tensor<2x2xf32>}
glow_high.constant @w3 : tensor<2x2xf32> {value = dense<[[3.5, 1.0], [2.0, 3.25]]> : tensor<2x2xf32>}
glow_high.placeholder @z : tensor<1x2xf32> {output}
glow_high.func @differs(@x, @z) {
  %x = glow_high.get @x : tensor<1x2xf32>
  %s = glow_high.sigmoid %x : tensor<1x2xf32>
  %w0 = glow_high.get @w0 : tensor<2x2xf32>
  %p0 = glow_high.matmul %s, %w0 : tensor<1x2xf32>
  %r0 = glow_high.relu %p0 : tensor<1x2xf32>
  %w1 = glow_high.get @w1 : tensor<2x2xf32>
  %p1 = glow_high.matmul %r0, %w1 : tensor<1x2xf32>
  %r1 = glow_high.relu %p1 : tensor<1x2xf32>
  %w2 = glow_high.get @w2 : tensor<2x2xf32>
  %p2 = glow_high.matmul %r1, %w2 : tensor<1x2xf32>
  %r2 = glow_high.tanh %p2 : tensor<1x2xf32>
  %w3 = glow_high.get @w3 : tensor<2x2xf32>
  %p3 = glow_high.matmul %r2, %w3 : tensor<1x2xf32>
  %r3 = glow_high.relu %p3 : tensor<1x2xf32>
  %t = glow_high.tanh %r3 : tensor<1x2xf32>
  glow_high.save %t, @z
}

// -----

// Each layer has state of its own, which begins with zeros and stays when the layer is erased.

// CHECK-LABEL: builtin.module attributes {glow.layers
// CHECK-SAME:    placeholders = [["c0", "c1", "c2", "c3"]]
// CHECK:         glow_high.placeholder @c3
// CHECK:         glow_high.func @caches
// CHECK:           glow_high.get @c1
// CHECK-NOT:       glow_high.get @c2
// CHECK:           glow_high.save {{.*}}, @c1
// CHECK-NOT:       glow_high.save {{.*}}, @c2
// CHECK:           glow_high.save {{.*}}, @z
glow_high.placeholder @x : tensor<1x2xf32> {input}
glow_high.constant @w0 : tensor<2x2xf32> {value = dense<[[0.5, 1.0], [2.0, 0.25]]> : tensor<2x2xf32>}
glow_high.constant @w1 : tensor<2x2xf32> {value = dense<[[1.5, 1.0], [2.0, 1.25]]> : tensor<2x2xf32>}
glow_high.constant @w2 : tensor<2x2xf32> {value = dense<[[2.5, 1.0], [2.0, 2.25]]> : tensor<2x2xf32>}
glow_high.constant @w3 : tensor<2x2xf32> {value = dense<[[3.5, 1.0], [2.0, 3.25]]> : tensor<2x2xf32>}
glow_high.placeholder @c0 : tensor<1x2xf32> {state}
glow_high.placeholder @c1 : tensor<1x2xf32> {state}
glow_high.placeholder @c2 : tensor<1x2xf32> {state}
glow_high.placeholder @c3 : tensor<1x2xf32> {state}
glow_high.placeholder @z : tensor<1x2xf32> {output}
glow_high.func @caches(@x, @c0, @c1, @c2, @c3, @z) {
  %x = glow_high.get @x : tensor<1x2xf32>
  %r_ = glow_high.sigmoid %x : tensor<1x2xf32>
  %w0 = glow_high.get @w0 : tensor<2x2xf32>
  %p0 = glow_high.matmul %r_, %w0 : tensor<1x2xf32>
  %c0 = glow_high.get @c0 {mutable} : tensor<1x2xf32>
  %n0 = glow_high.add %c0, %p0 : tensor<1x2xf32>
  glow_high.save %n0, @c0
  %r0 = glow_high.relu %n0 : tensor<1x2xf32>
  %w1 = glow_high.get @w1 : tensor<2x2xf32>
  %p1 = glow_high.matmul %r0, %w1 : tensor<1x2xf32>
  %c1 = glow_high.get @c1 {mutable} : tensor<1x2xf32>
  %n1 = glow_high.add %c1, %p1 : tensor<1x2xf32>
  glow_high.save %n1, @c1
  %r1 = glow_high.relu %n1 : tensor<1x2xf32>
  %w2 = glow_high.get @w2 : tensor<2x2xf32>
  %p2 = glow_high.matmul %r1, %w2 : tensor<1x2xf32>
  %c2 = glow_high.get @c2 {mutable} : tensor<1x2xf32>
  %n2 = glow_high.add %c2, %p2 : tensor<1x2xf32>
  glow_high.save %n2, @c2
  %r2 = glow_high.relu %n2 : tensor<1x2xf32>
  %w3 = glow_high.get @w3 : tensor<2x2xf32>
  %p3 = glow_high.matmul %r2, %w3 : tensor<1x2xf32>
  %c3 = glow_high.get @c3 {mutable} : tensor<1x2xf32>
  %n3 = glow_high.add %c3, %p3 : tensor<1x2xf32>
  glow_high.save %n3, @c3
  %r3 = glow_high.relu %n3 : tensor<1x2xf32>
  %t = glow_high.tanh %r3 : tensor<1x2xf32>
  glow_high.save %t, @z
}
