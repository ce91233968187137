// The instructions of a kept layer are copied for those that were erased, with weights of their own.

// RUN: glow-opt %s -p 'assign-target{backend=cpu target=avx2},collapse-layers{kept=4 least=5},glow-high-to-glow-low,fuse-epilogues,shorten-lifetimes,select,expand-layers,remove-unused-storage' | filecheck %s

// CHECK-LABEL: builtin.module {
// CHECK-COUNT-7: glow_high.constant @w{{.}}.
// CHECK-NOT:     glow_high.constant
// CHECK:         glow_low.func @layers
// CHECK-COUNT-7:   glow_low.matmul
// CHECK-NOT:       glow_low.matmul
glow_high.placeholder @x : tensor<1x2xf32> {input}
glow_high.constant @w0 : tensor<2x2xf32> {value = dense<[[0.5, 1.0], [2.0, 0.25]]> : tensor<2x2xf32>}
glow_high.constant @w1 : tensor<2x2xf32> {value = dense<[[1.5, 1.0], [2.0, 1.25]]> : tensor<2x2xf32>}
glow_high.constant @w2 : tensor<2x2xf32> {value = dense<[[2.5, 1.0], [2.0, 2.25]]> : tensor<2x2xf32>}
glow_high.constant @w3 : tensor<2x2xf32> {value = dense<[[3.5, 1.0], [2.0, 3.25]]> : tensor<2x2xf32>}
glow_high.constant @w4 : tensor<2x2xf32> {value = dense<[[4.5, 1.0], [2.0, 4.25]]> : tensor<2x2xf32>}
glow_high.constant @w5 : tensor<2x2xf32> {value = dense<[[5.5, 1.0], [2.0, 5.25]]> : tensor<2x2xf32>}
glow_high.constant @w6 : tensor<2x2xf32> {value = dense<[[6.5, 1.0], [2.0, 6.25]]> : tensor<2x2xf32>}
glow_high.placeholder @y0 : tensor<1x2xf32> {output}
glow_high.placeholder @y1 : tensor<1x2xf32> {output}
glow_high.placeholder @y2 : tensor<1x2xf32> {output}
glow_high.placeholder @y3 : tensor<1x2xf32> {output}
glow_high.placeholder @y4 : tensor<1x2xf32> {output}
glow_high.placeholder @y5 : tensor<1x2xf32> {output}
glow_high.placeholder @y6 : tensor<1x2xf32> {output}
glow_high.placeholder @z : tensor<1x2xf32> {output}
glow_high.func @layers(@x, @y0, @y1, @y2, @y3, @y4, @y5, @y6, @z) {
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
  %w4 = glow_high.get @w4 : tensor<2x2xf32>
  %p4 = glow_high.matmul %r3, %w4 : tensor<1x2xf32>
  %r4 = glow_high.relu %p4 : tensor<1x2xf32>
  glow_high.save %r4, @y4
  %w5 = glow_high.get @w5 : tensor<2x2xf32>
  %p5 = glow_high.matmul %r4, %w5 : tensor<1x2xf32>
  %r5 = glow_high.relu %p5 : tensor<1x2xf32>
  glow_high.save %r5, @y5
  %w6 = glow_high.get @w6 : tensor<2x2xf32>
  %p6 = glow_high.matmul %r5, %w6 : tensor<1x2xf32>
  %r6 = glow_high.relu %p6 : tensor<1x2xf32>
  glow_high.save %r6, @y6
  %t = glow_high.tanh %r6 : tensor<1x2xf32>
  glow_high.save %t, @z
}
