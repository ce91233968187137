// What is multiplied in f32 is multiplied in narrower floats, and stored so; sums, inputs, outputs and kept operators stay.

// RUN: glow-opt %s -p 'assign-target{target=avx2},convert-precision,canonicalize,fold-constants,cse' | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},convert-precision{keep=fully_connected},canonicalize' | filecheck %s --check-prefix=KEEP
// RUN: glow-opt %s -p 'assign-target{target=avx2},convert-precision{to=f16},canonicalize' | filecheck %s --check-prefix=CLIP
// RUN: not glow-opt %s -p 'assign-target,convert-precision{to=i8}' 2>&1 | filecheck %s --check-prefix=TO
// RUN: not glow-opt %s -p 'assign-target,convert-precision{keep=lstm}' 2>&1 | filecheck %s --check-prefix=UNKNOWN

// Weights are stored narrow; a bias is added to the sums. What elements are moved to a product, they are moved as narrow
// ones, and what else is computed of them reads those.

// CHECK:       glow_high.constant @[[W:cast.*]] : tensor<8x3x3x4xbf16>
// CHECK-LABEL: glow_high.func @main(
// CHECK:         %[[X:.*]] = glow_high.cast %x {to = bf16} : tensor<1x6x6x4xbf16>
// CHECK:         %[[W0:.*]] = glow_high.get @[[W]] : tensor<8x3x3x4xbf16>
// CHECK-NEXT:    %[[C:.*]] = glow_high.conv %[[X]], %[[W0]], %{{.*}} {{{.*}}to = f32} : tensor<1x6x6x8xf32>
// CHECK-NEXT:    %[[R:.*]] = glow_high.relu %[[C]] : tensor<1x6x6x8xf32>
// CHECK-NEXT:    %[[N:.*]] = glow_high.cast %[[R]] {to = bf16} : tensor<1x6x6x8xbf16>
// CHECK-NEXT:    %[[F:.*]] = glow_high.reshape %[[N]] {{.*}} : tensor<36x8xbf16>
// CHECK-NEXT:    %[[V:.*]] = glow_high.get @{{.*}} : tensor<8x8xbf16>
// CHECK:         %[[P:.*]] = glow_high.fully_connected %[[F]], %[[V]], %{{.*}} {to = f32} : tensor<36x8xf32>
// CHECK-NEXT:    %[[B:.*]] = glow_high.cast %[[F]] {to = f32} : tensor<36x8xf32>
// CHECK-NEXT:    %[[S:.*]] = glow_high.add %[[P]], %[[B]] : tensor<36x8xf32>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.softmax %[[S]] {{.*}} : tensor<36x8xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]

// KEEP: glow_high.conv {{.*}}to = f32
// KEEP: glow_high.reshape {{.*}} : tensor<36x8xf32>
// KEEP: glow_high.fully_connected %{{[a-z0-9]*}}, %{{[a-z0-9]*}}, %{{[a-z0-9]*}} : tensor<36x8xf32>

// CLIP: %[[L:.*]] = glow_high.clip %x,
// CLIP-NEXT: glow_high.cast %[[L]] {to = f16}
// CLIP: glow_high.conv {{.*}}to = f32} : tensor<1x6x6x8xf32>

// TO: there is no precision 'i8' (hint: it is f32, or bf16 or f16)
// UNKNOWN: no node to keep is called 'lstm'
glow_high.constant @w : tensor<8x3x3x4xf32> {value = dense<1.5> : tensor<8x3x3x4xf32>}
glow_high.constant @v : tensor<8x8xf32> {value = dense<0.5> : tensor<8x8xf32>}
glow_high.constant @b : tensor<8xf32> {value = dense<0.3> : tensor<8xf32>}
glow_high.func @main(%x: tensor<1x6x6x4xf32>) -> tensor<36x8xf32> {
  %w = glow_high.get @w : tensor<8x3x3x4xf32>
  %b = glow_high.get @b : tensor<8xf32>
  %0 = glow_high.conv %x, %w, %b {pads = [1, 1, 1, 1]} : tensor<1x6x6x8xf32>
  %1 = glow_high.relu %0 : tensor<1x6x6x8xf32>
  %2 = glow_high.reshape %1 {shape = [36, 8]} : tensor<36x8xf32>
  %v = glow_high.get @v : tensor<8x8xf32>
  %3 = glow_high.fully_connected %2, %v, %b : tensor<36x8xf32>
  %4 = glow_high.add %3, %2 : tensor<36x8xf32>
  %5 = glow_high.softmax %4 {axis = 1} : tensor<36x8xf32>
  glow_high.return %5
}
