// RUN: GLOW_UNCHANGED
// RUN: GLOW_GENERIC_ROUNDTRIP

// CHECK-GENERIC-LABEL: "func.func"
func.func @remainder(%x: f32, %y: f32) -> f32 {
  // CHECK-GENERIC: "arith.remf"(%x, %y) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
  %r = arith.remf %x, %y : f32
  func.return %r : f32
}
