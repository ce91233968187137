// RUN: GLOW_ROUNDTRIP
// RUN: GLOW_GENERIC_ROUNDTRIP

// CHECK-LABEL: func.func @remainder
// CHECK-GENERIC-LABEL: "func.func"
func.func @remainder(%x: f32, %y: f32) -> f32 {
  // CHECK: %[[R:.*]] = arith.remf %x, %y : f32
  // CHECK-GENERIC: "arith.remf"(%x, %y) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
  %r = arith.remf %x, %y : f32
  // CHECK: func.return %[[R]] : f32
  func.return %r : f32
}
