// What is computed in f32 is computed and stored in narrower floats; inputs, outputs and kept operators stay as they are.

// RUN: glow-opt %s -p 'assign-target{target=avx2},convert-precision,canonicalize,fold-constants' | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},convert-precision{keep=softmax},canonicalize' | filecheck %s --check-prefix=KEEP
// RUN: glow-opt %s -p 'assign-target{target=avx2},convert-precision{to=f16},canonicalize' | filecheck %s --check-prefix=CLIP
// RUN: not glow-opt %s -p 'assign-target,convert-precision{to=i8}' 2>&1 | filecheck %s --check-prefix=TO
// RUN: not glow-opt %s -p 'assign-target,convert-precision{keep=lstm}' 2>&1 | filecheck %s --check-prefix=UNKNOWN

// Weights are stored narrow, and conversions between two narrow operators are gone.

// CHECK:       glow_high.constant @[[W:cast.*]] : tensor<8x3x3x4xbf16>
// CHECK-LABEL: glow_high.func @main(
// CHECK:         %[[X:.*]] = glow_high.cast %x {to = bf16} : tensor<1x6x6x4xbf16>
// CHECK:         %[[W0:.*]] = glow_high.get @[[W]] : tensor<8x3x3x4xbf16>
// CHECK-NEXT:    %[[C:.*]] = glow_high.conv %[[X]], %[[W0]] {{.*}} : tensor<1x6x6x8xbf16>
// CHECK-NEXT:    %[[R:.*]] = glow_high.relu %[[C]] : tensor<1x6x6x8xbf16>
// CHECK-NEXT:    %[[S:.*]] = glow_high.softmax %[[R]] {{.*}} : tensor<1x6x6x8xbf16>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.cast %[[S]] {to = f32}
// CHECK-NEXT:    glow_high.return %[[Y]]

// KEEP: %[[R:.*]] = glow_high.relu {{.*}} : tensor<1x6x6x8xbf16>
// KEEP-NEXT: %[[F:.*]] = glow_high.cast %[[R]] {to = f32}
// KEEP-NEXT: %[[S:.*]] = glow_high.softmax %[[F]] {{.*}} : tensor<1x6x6x8xf32>

// CLIP: %[[L:.*]] = glow_high.clip %x,
// CLIP-NEXT: glow_high.cast %[[L]] {to = f16}
// CLIP: glow_high.conv
// CLIP-NEXT: glow_high.relu {{.*}} : tensor<1x6x6x8xf16>

// TO: there is no precision 'i8' (hint: it is f32, or bf16 or f16)
// UNKNOWN: no node to keep is called 'lstm'
glow_high.constant @w : tensor<8x3x3x4xf32> {value = dense<1.5> : tensor<8x3x3x4xf32>}
glow_high.func @main(%x: tensor<1x6x6x4xf32>) -> tensor<1x6x6x8xf32> {
  %w = glow_high.get @w : tensor<8x3x3x4xf32>
  %0 = glow_high.conv %x, %w {pads = [1, 1, 1, 1]} : tensor<1x6x6x8xf32>
  %1 = glow_high.relu %0 : tensor<1x6x6x8xf32>
  %2 = glow_high.softmax %1 {axis = 3} : tensor<1x6x6x8xf32>
  glow_high.return %2
}
