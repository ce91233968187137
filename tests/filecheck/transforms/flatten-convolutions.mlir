// Convolutions along three axes become convolutions of images.

// RUN: glow-opt %s -p 'assign-target{target=avx2},flatten-convolutions' --split-input-file | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},flatten-convolutions,flatten-convolutions' --split-input-file | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=cortex-m55},flatten-convolutions' --split-input-file | filecheck %s --check-prefix=HELIUM
// RUN: glow-opt %s -p 'assign-target{target=avx2 accuracy=strict},flatten-convolutions' --split-input-file | filecheck %s --check-prefix=STRICT

// One tap along the first axis: every second image is an example of the batch.

// CHECK-LABEL: glow_high.func @batch(
// CHECK:         %[[SECOND:.*]] = glow_high.slice %x {{.*}}steps = [1, 2, 1, 1, 1]{{.*}} : tensor<2x2x5x6x4xf32>
// CHECK-NEXT:    %[[IMAGES:.*]] = glow_high.reshape %[[SECOND]] {{.*}} : tensor<4x5x6x4xf32>
// CHECK-NEXT:    %[[TAPS:.*]] = glow_high.reshape %w {{.*}} : tensor<8x3x3x2xf32>
// CHECK-NEXT:    %[[RESULT:.*]] = glow_high.conv %[[IMAGES]], %[[TAPS]], %b {strides = [1, 2], pads = [1, 1, 1, 1], {{.*}}group = 2{{.*}} : tensor<4x5x3x8xf32>
// CHECK-NEXT:    glow_high.reshape %[[RESULT]] {{.*}} : tensor<2x2x5x3x8xf32>
glow_high.func @batch(%x: tensor<2x3x5x6x4xf32>, %w: tensor<8x1x3x3x2xf32>, %b: tensor<8xf32>) -> tensor<2x2x5x3x8xf32> {
  %1 = glow_high.conv %x, %w, %b {strides = [2, 1, 2], pads = [0, 1, 1, 0, 1, 1], group = 2} : tensor<2x2x5x3x8xf32>
  glow_high.return %1
}

// -----

// One tap along the others, which are one axis then.

// CHECK-LABEL: glow_high.func @merged(
// CHECK:         %[[LINES:.*]] = glow_high.reshape %x {{.*}} : tensor<1x4x30x2xf32>
// CHECK-NEXT:    %[[TAPS:.*]] = glow_high.reshape %w {{.*}} : tensor<3x3x1x2xf32>
// CHECK-NEXT:    glow_high.conv %[[LINES]], %[[TAPS]] {{.*}}pads = [1, 0, 1, 0]{{.*}} : tensor<1x4x30x3xf32>
glow_high.func @merged(%x: tensor<1x4x5x6x2xf32>, %w: tensor<3x3x1x1x2xf32>) -> tensor<1x4x5x6x3xf32> {
  %1 = glow_high.conv %x, %w {pads = [1, 0, 0, 1, 0, 0]} : tensor<1x4x5x6x3xf32>
  glow_high.return %1
}

// -----

// Three taps along the first axis are three times the channels.

// STRICT-LABEL: glow_high.func @channels(
// STRICT:         glow_high.conv %x, %w {{.*}} : tensor<1x4x5x6x32xf32>

// CHECK-LABEL: glow_high.func @channels(
// CHECK:         %[[ZEROS:.*]] = glow_high.pad %x {{.*}} : tensor<1x6x5x6x16xf32>
// CHECK-COUNT-3: glow_high.slice %[[ZEROS]] {{.*}} : tensor<1x4x5x6x16xf32>
// CHECK:         %[[ALL:.*]] = glow_high.concat %{{.*}}, %{{.*}}, %{{.*}} {axis = 4} : tensor<1x4x5x6x48xf32>
// CHECK:         %[[ORDERED:.*]] = glow_high.transpose %w {permutation = [0, 2, 3, 1, 4]}
// CHECK-NEXT:    %[[TAPS:.*]] = glow_high.reshape %[[ORDERED]] {{.*}} : tensor<32x3x3x48xf32>
// CHECK-NEXT:    %[[IMAGES:.*]] = glow_high.reshape %[[ALL]] {{.*}} : tensor<4x5x6x48xf32>
// CHECK-NEXT:    glow_high.conv %[[IMAGES]], %[[TAPS]] {{.*}}pads = [1, 1, 1, 1]{{.*}} : tensor<4x5x6x32xf32>
glow_high.func @channels(%x: tensor<1x4x5x6x16xf32>, %w: tensor<32x3x3x3x16xf32>) -> tensor<1x4x5x6x32xf32> {
  %1 = glow_high.conv %x, %w {pads = [1, 1, 1, 1, 1, 1]} : tensor<1x4x5x6x32xf32>
  glow_high.return %1
}

// -----

// Images, volumes of few outputs, with strides along rows, in groups, and with channels first stay as they are.

// CHECK-LABEL: glow_high.func @stay(
// CHECK-NOT:     glow_high.{{reshape|concat}}
// CHECK:         glow_high.conv {{.*}} : tensor<1x4x4x32xf32>
// CHECK:         glow_high.conv {{.*}} : tensor<1x2x4x4x8xf32>
// CHECK:         glow_high.conv {{.*}} : tensor<1x2x2x2x32xf32>
// CHECK:         glow_high.conv {{.*}} : tensor<1x2x4x4x64xf32>
// CHECK:         glow_high.conv {{.*}} : tensor<1x32x2x4x4xf32>
// CHECK-NOT:     glow_high.{{reshape|concat}}
glow_high.placeholder @image : tensor<1x6x6x16xf32> {input}
glow_high.placeholder @volume : tensor<1x4x6x6x16xf32> {input}
glow_high.placeholder @first : tensor<1x16x4x6x6xf32> {input}
glow_high.placeholder @w2 : tensor<32x3x3x16xf32> {input}
glow_high.placeholder @few : tensor<8x3x3x3x16xf32> {input}
glow_high.placeholder @w3 : tensor<32x3x3x3x16xf32> {input}
glow_high.placeholder @groups : tensor<64x3x3x3x8xf32> {input}
glow_high.placeholder @w1 : tensor<32x16x3x3x3xf32> {input}
glow_high.placeholder @a : tensor<1x4x4x32xf32> {output}
glow_high.placeholder @b : tensor<1x2x4x4x8xf32> {output}
glow_high.placeholder @c : tensor<1x2x2x2x32xf32> {output}
glow_high.placeholder @d : tensor<1x2x4x4x64xf32> {output}
glow_high.placeholder @e : tensor<1x32x2x4x4xf32> {output}
glow_high.func @stay(@image, @volume, @first, @w2, @few, @w3, @groups, @w1, @a, @b, @c, @d, @e) {
  %image = glow_high.get @image : tensor<1x6x6x16xf32>
  %volume = glow_high.get @volume : tensor<1x4x6x6x16xf32>
  %first = glow_high.get @first : tensor<1x16x4x6x6xf32>
  %w2 = glow_high.get @w2 : tensor<32x3x3x16xf32>
  %few = glow_high.get @few : tensor<8x3x3x3x16xf32>
  %w3 = glow_high.get @w3 : tensor<32x3x3x3x16xf32>
  %groups = glow_high.get @groups : tensor<64x3x3x3x8xf32>
  %w1 = glow_high.get @w1 : tensor<32x16x3x3x3xf32>
  %1 = glow_high.conv %image, %w2 : tensor<1x4x4x32xf32>
  glow_high.save %1, @a
  %2 = glow_high.conv %volume, %few : tensor<1x2x4x4x8xf32>
  glow_high.save %2, @b
  %3 = glow_high.conv %volume, %w3 {strides = [1, 2, 2]} : tensor<1x2x2x2x32xf32>
  glow_high.save %3, @c
  %4 = glow_high.conv %volume, %groups {group = 2} : tensor<1x2x4x4x64xf32>
  glow_high.save %4, @d
  %5 = glow_high.conv %first, %w1 {layout = "channels_first"} : tensor<1x32x2x4x4xf32>
  glow_high.save %5, @e
}

// -----

// A border of codes is of those of 0.

// CHECK-LABEL: glow_high.func @codes(
// CHECK:         %[[I:.*]] = glow_high.storage_cast %x {to = ui8}
// CHECK-NEXT:    %[[Z:.*]] = glow_high.splat {value = 7 : ui8}
// CHECK-NEXT:    %[[P:.*]] = glow_high.pad %[[I]], %[[Z]] {pads = [0, 1, 0, 0, 0, 0, 1, 0, 0, 0]} : tensor<1x4x4x4x4xui8>
// CHECK-NEXT:    glow_high.storage_cast %[[P]] {to = !quant.uniform<u8:f32, 0.5:7>}
glow_high.func @codes(%x: tensor<1x2x4x4x4x!quant.uniform<u8:f32, 0.5:7>>, %w: tensor<8x1x3x3x4xi8>) -> tensor<1x4x2x2x8xi32> {
  %y = glow_high.conv %x, %w {pads = [1, 0, 0, 1, 0, 0]} : tensor<1x4x2x2x8xi32>
  glow_high.return %y
}

// -----

// Helium multiplies 16 neighbouring codes at once: the taps of an image of one channel become channels, but not those of
// an image that has enough, nor where codes are multiplied one by one, or few filters read the copies.

// HELIUM-LABEL: glow_high.func @codes(
// HELIUM:         glow_high.pad
// HELIUM-COUNT-10: glow_high.slice %{{.*}} : tensor<1x25x10x1x!quant.uniform<i8:f32, 0.5:3>>
// HELIUM:         %[[T:.*]] = glow_high.transpose %f {permutation = [0, 2, 1, 3]} : tensor<64x4x10x1xi8>
// HELIUM-NEXT:    %[[F:.*]] = glow_high.reshape %[[T]] {shape = [64, 1, 4, 10]} : tensor<64x1x4x10xi8>
// HELIUM-NEXT:    %[[I:.*]] = glow_high.concat {{.*}} {axis = 3} : tensor<1x25x10x10x
// HELIUM-NEXT:    glow_high.conv %[[I]], %[[F]] {strides = [1, 2], pads = [0, 1, 0, 1], dilations = [1, 1]} : tensor<1x25x5x64xi32>
// CHECK-LABEL: glow_high.func @codes(
// CHECK-NEXT:    glow_high.conv
glow_high.func @codes(%x: tensor<1x49x10x1x!quant.uniform<i8:f32, 0.5:3>>, %f: tensor<64x10x4x1xi8>) -> tensor<1x25x5x64xi32> {
  %y = glow_high.conv %x, %f {strides = [2, 2], pads = [4, 1, 5, 1]} : tensor<1x25x5x64xi32>
  glow_high.return %y
}

// -----

// HELIUM-LABEL: glow_high.func @enough(
// HELIUM-NEXT:    glow_high.conv
// HELIUM-NEXT:    glow_high.conv
glow_high.func @enough(%x: tensor<1x25x5x16xi8>, %f: tensor<64x3x3x16xi8>, %plane: tensor<1x25x5x1xi8>, %few: tensor<1x3x3x1xi8>) -> (tensor<1x23x3x64xi32>, tensor<1x23x3x1xi32>) {
  %y = glow_high.conv %x, %f : tensor<1x23x3x64xi32>
  %z = glow_high.conv %plane, %few : tensor<1x23x3x1xi32>
  glow_high.return %y, %z
}
