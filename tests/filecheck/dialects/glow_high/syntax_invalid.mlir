// Text that is no operator or function: what the parser refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @operands(%x: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 2 operands, got 1}}
  %y = glow_high.add %x : tensor<2x3xf32>
}

// -----

glow_high.func @operands(%x: tensor<2x3xf32>) {
  // expected-error@+2 {{expected 3 operands, got 4}}
  %y = glow_high.clip %x, %x, %x, %x : tensor<2x3xf32>
}

// -----

glow_high.func @ascending(%x: tensor<2x3x4xf32>) {
  // expected-error@+2 {{dimensions of a row ascend, got [2, 1]}}
  %y = glow_high.generic %x {maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i)>], iterators = ["parallel", "reduction", "reduction"]} {
  ^bb0(%row: !glow.row<f32, [2, 1]>):
  } : tensor<2xf32>
}

// -----

// expected-error@+1 {{a function takes nothing but its bindings}}
"glow_high.func"() <{sym_name = "generic", bindings = []}> ({
^bb0(%x: tensor<4xf32>):
}) : () -> ()

// -----

// What is refused is not printed.
// CHECK-NOT: @operands
// CHECK: glow_high.func @fine(
// CHECK-NOT: @ascending
glow_high.func @fine(%x: tensor<4xf32>) -> tensor<4xf32> {
  glow_high.return %x
}
