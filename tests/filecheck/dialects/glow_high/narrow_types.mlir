// RUN: glow-opt %s | filecheck %s
// RUN: glow-opt %s -p canonicalize | filecheck %s --check-prefix=FOLDED
// RUN: glow-opt %s -p glow-high-to-glow-low,stack | filecheck %s --check-prefix=LOW
// RUN: GLOW_ROUNDTRIP

// CHECK: glow_high.constant @scale : tensor<2xf8E8M0FNU> {value = dense<[5.000000e-01, 4.000000e+00]> : tensor<2xf8E8M0FNU>}
glow_high.constant @scale : tensor<2xf8E8M0FNU> {value = dense<[0.5, 4.0]> : tensor<2xf8E8M0FNU>}
// CHECK-NEXT: glow_high.constant @codes : tensor<2xui4> {value = dense<[3, 15]> : tensor<2xui4>}
glow_high.constant @codes : tensor<2xui4> {value = dense<[3, 15]> : tensor<2xui4>}

// CHECK-LABEL: @types
glow_high.func @types(%x: tensor<2xf8E4M3FN>, %y: tensor<2xf4E2M1FN>, %z: tensor<2xi2>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi8>) {
  %scale = glow_high.get @scale : tensor<2xf8E8M0FNU>
  %codes = glow_high.get @codes : tensor<2xui4>
  // CHECK: %a = glow_high.cast %x {to = f32} : tensor<2xf32>
  %a = glow_high.cast %x {to = f32} : tensor<2xf32>
  // CHECK-NEXT: %b = glow_high.cast %y {to = f32} : tensor<2xf32>
  %b = glow_high.cast %y {to = f32} : tensor<2xf32>
  // CHECK-NEXT: %c = glow_high.cast %scale {to = f32} : tensor<2xf32>
  %c = glow_high.cast %scale {to = f32} : tensor<2xf32>
  // CHECK-NEXT: %d = glow_high.cast %codes {to = f32} : tensor<2xf32>
  %d = glow_high.cast %codes {to = f32} : tensor<2xf32>
  // CHECK-NEXT: %e = glow_high.cast %z {to = i8} : tensor<2xi8>
  %e = glow_high.cast %z {to = i8} : tensor<2xi8>
  glow_high.return %a, %b, %c, %d, %e
}

// CHECK-LABEL: @conversions
// FOLDED-LABEL: @conversions
// LOW-LABEL: @conversions
glow_high.func @conversions(%x: tensor<4xf32>, %q: tensor<4xi4>) -> (tensor<4xf8E5M2>, tensor<4xf8E5M2FNUZ>, tensor<4xf8E8M0FNU>, tensor<4xf8E4M3FNUZ>, tensor<4xui2>, tensor<4xi8>) {
  // CHECK: %a = glow_high.cast %x {to = f8E5M2, saturate = false} : tensor<4xf8E5M2>
  // LOW: arith.truncf %{{.*}} : f32 to f8E5M2
  %a = glow_high.cast %x {to = f8E5M2, saturate = false} : tensor<4xf8E5M2>
  // CHECK-NEXT: %b = glow_high.cast %x {to = f8E5M2FNUZ} : tensor<4xf8E5M2FNUZ>
  // LOW: arith.constant -5.734400e+04 : f32
  // LOW: arith.maximumf
  // LOW: arith.minimumf
  // LOW: arith.truncf %{{.*}} : f32 to f8E5M2FNUZ
  %b = glow_high.cast %x {to = f8E5M2FNUZ} : tensor<4xf8E5M2FNUZ>
  // CHECK-NEXT: %c = glow_high.cast %x {to = f8E8M0FNU, round_mode = "up"} : tensor<4xf8E8M0FNU>
  %c = glow_high.cast %x {to = f8E8M0FNU, round_mode = "up"} : tensor<4xf8E8M0FNU>
  %wide = glow_high.cast %x {to = f64} : tensor<4xf64>
  // What the conversion says stays where one before it goes.
  // FOLDED: %d = glow_high.cast %x {to = f8E4M3FNUZ, saturate = false} : tensor<4xf8E4M3FNUZ>
  %d = glow_high.cast %wide {to = f8E4M3FNUZ, saturate = false} : tensor<4xf8E4M3FNUZ>
  %bytes = glow_high.cast %q {to = i8} : tensor<4xi8>
  // FOLDED-NEXT: %e = glow_high.cast %q {to = ui2} : tensor<4xui2>
  %e = glow_high.cast %bytes {to = ui2} : tensor<4xui2>
  // A narrow type between others rounds, or wraps.
  // FOLDED-NEXT: %f = glow_high.cast %e {to = i8} : tensor<4xi8>
  %f = glow_high.cast %e {to = i8} : tensor<4xi8>
  glow_high.return %a, %b, %c, %d, %e, %f
}
