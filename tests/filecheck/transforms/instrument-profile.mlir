// What may become codes is saved in outputs of its own: inputs, and results of operators that have a form on codes.

// RUN: glow-opt %s -p instrument-profile | filecheck %s

glow_high.placeholder @image : tensor<1x4x4x1xf32> {input}
glow_high.placeholder @tokens : tensor<2xi64> {input}
glow_high.placeholder @y : tensor<1x4x4x2xf32> {output}
glow_high.constant @filter : tensor<2x1x1x1xf32> {value = dense<[[[[0.5]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>}
glow_high.func @main(@image, @tokens, @y) {
  %image = glow_high.get @image : tensor<1x4x4x1xf32>
  %tokens = glow_high.get @tokens : tensor<2xi64>
  %filter = glow_high.get @filter : tensor<2x1x1x1xf32>
  %c = glow_high.conv %image, %filter : tensor<1x4x4x2xf32> loc("conv")
  %r = glow_high.relu %c : tensor<1x4x4x2xf32> loc(fused["conv", "relu"])
  %g = glow_high.gather %r, %tokens {axis = 1} : tensor<1x2x4x2xf32> loc("gather")
  %s = glow_high.softmax %r {axis = 3} : tensor<1x4x4x2xf32> loc("softmax")
  %n = glow_high.neg %s : tensor<1x4x4x2xf32> loc("neg")
  glow_high.save %n, @y
}

// CHECK:      glow_high.placeholder @y : tensor<1x4x4x2xf32> {output}
// CHECK:      glow_high.placeholder @profile_0 : tensor<1x4x4x1xf32> {output, label = "profile.image:0"}
// CHECK-NEXT: glow_high.placeholder @profile_1 : tensor<1x4x4x2xf32> {output, label = "profile.conv:0"}
// CHECK-NEXT: glow_high.placeholder @profile_2 : tensor<1x4x4x2xf32> {output, label = "profile.conv+relu:0"}
// CHECK-NEXT: glow_high.placeholder @profile_3 : tensor<1x2x4x2xf32> {output, label = "profile.gather:0"}
// CHECK-NEXT: glow_high.func @main(@image, @tokens, @y, @profile_0, @profile_1, @profile_2, @profile_3) {
// CHECK-NEXT:   %image = glow_high.get @image
// CHECK-NEXT:   glow_high.save %image, @profile_0
// CHECK:        %c = glow_high.conv
// CHECK-NEXT:   glow_high.save %c, @profile_1
