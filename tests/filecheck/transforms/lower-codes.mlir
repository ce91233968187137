// RUN: glow-opt %s -p 'assign-target{target=avx2},lower' | filecheck %s

// The border of codes is their zero point.

// CHECK-LABEL: glow_high.func @codes(
// CHECK:         %[[I:.*]] = glow_high.storage_cast %x {to = ui8}
// CHECK-NEXT:    %[[Z:.*]] = glow_high.splat {value = 7 : ui8}
// CHECK-NEXT:    %[[P:.*]] = glow_high.pad %[[I]], %[[Z]] {pads = [0, 1, 1, 0, 0, 1, 1, 0]} : tensor<1x6x6x4xui8>
// CHECK-NEXT:    glow_high.storage_cast %[[P]] {to = !quant.uniform<u8:f32, 0.5:7>}
glow_high.func @codes(%x: tensor<1x4x4x4x!quant.uniform<u8:f32, 0.5:7>>, %w: tensor<2x3x3x4xi8>) -> tensor<1x4x4x2xi32> {
  %1 = glow_high.conv %x, %w {pads = [1, 1, 1, 1]} : tensor<1x4x4x2xi32>
  glow_high.return %1
}
