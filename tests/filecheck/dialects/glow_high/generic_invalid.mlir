// Chains of stages: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.func @no_map(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{1 operands and a result need as many maps}}
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%e: f32):
    %0 = arith.negf %e : f32
    glow.yield %0 : f32
  } : tensor<2x3xf32>
}

// -----

glow_high.func @kind(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{an iterator is one of parallel, row, reduction, not 'window'}}
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterators = ["parallel", "window"]} {
  ^bb0(%e: f32):
    %0 = arith.negf %e : f32
    glow.yield %0 : f32
  } : tensor<2x3xf32>
}

// -----

glow_high.func @extent(%x: tensor<2xf32>) {
  // expected-error@+1 {{no operand says how long d1 is}}
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%e: f32):
    %0 = arith.negf %e : f32
    glow.yield %0 : f32
  } : tensor<2x3xf32>
}

// -----

glow_high.func @argument(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{the body must take !glow.row<f32, [1]>}}
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterators = ["parallel", "reduction"]} {
  ^bb0(%e: f32):
    %0 = arith.negf %e : f32
    glow.yield %0 : f32
  } : tensor<2xf32>
}

// -----

glow_high.func @twice(%x: tensor<2x2xf32>) {
  // expected-error@+1 {{the result has the dimensions [0, 1], which are no reductions, once each}}
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, i)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%e: f32):
    %0 = arith.negf %e : f32
    glow.yield %0 : f32
  } : tensor<2x2xf32>
}

// -----

glow_high.func @parallel_stage(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{a stage runs over [0], which are parallel, or none}}
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterators = ["parallel", "reduction"]} {
  ^bb0(%row: !glow.row<f32, [1]>):
    %0 = glow.stage(%row) over [0, 1] fold [add] along [0, 1] {
    ^bb1(%e: f32):
      glow.yield %e : f32
    } : f32
    glow.yield %0 : f32
  } : tensor<2xf32>
}

// -----

glow_high.func @given(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{the body yields elements over [], the result has [1]}}
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterators = ["parallel", "row"]} {
  ^bb0(%row: !glow.row<f32, [1]>):
    %0 = glow.stage(%row) over [1] fold [add] along [1] {
    ^bb1(%e: f32):
      glow.yield %e : f32
    } : f32
    glow.yield %0 : f32
  } : tensor<2x3xf32>
}

// -----

glow_high.func @copied(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{the body yields a row of an operand: a stage copies its elements}}
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterators = ["parallel", "row"]} {
  ^bb0(%row: !glow.row<f32, [1]>):
    glow.yield %row : !glow.row<f32, [1]>
  } : tensor<2x3xf32>
}

// -----

glow_high.func @word(%x: tensor<2x3xf32>) {
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterators = ["parallel", "reduction"]} {
  ^bb0(%row: !glow.row<f32, [1]>):
    // expected-error@+1 {{f32 is folded by add, mul, maximumf, minimumf, maxnumf, minnumf, first_maximumf, first_minimumf, last_maximumf, last_minimumf, not 'maxsi'}}
    %0 = glow.stage(%row) over [1] fold [maxsi] along [1] {
    ^bb1(%e: f32):
      glow.yield %e : f32
    } : f32
    glow.yield %0 : f32
  } : tensor<2xf32>
}

// -----

glow_high.func @narrow(%x: tensor<2x3xf16>) {
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterators = ["parallel", "reduction"]} {
  ^bb0(%row: !glow.row<f16, [1]>):
    // expected-error@+1 {{elements of f16 are not folded: convert them}}
    %0 = glow.stage(%row) over [1] fold [add] along [1] {
    ^bb1(%e: f16):
      glow.yield %e : f16
    } : f16
    glow.yield %0 : f16
  } : tensor<2xf16>
}

// -----

glow_high.func @outside(%x: tensor<2x3x4xf32>) {
  %y = glow_high.generic %x {maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i)>], iterators = ["parallel", "reduction", "reduction"]} {
  ^bb0(%row: !glow.row<f32, [1, 2]>):
    // expected-error@+1 {{a row over [1, 2] has elements along [2] too}}
    %0 = glow.stage(%row) over [1] fold [add] along [1] {
    ^bb1(%e: f32):
      glow.yield %e : f32
    } : f32
    glow.yield %0 : f32
  } : tensor<2xf32>
}

// -----

glow_high.func @scalar_input(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  %y = glow_high.generic %x, %s {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterators = ["parallel", "reduction"]} {
  ^bb0(%row: !glow.row<f32, [1]>, %scale: f32):
    // expected-error@+1 {{a stage takes rows: its body uses f32 as it is}}
    %0 = glow.stage(%row, %scale) over [1] fold [add] along [1] {
    ^bb1(%e: f32, %f: f32):
      %1 = arith.mulf %e, %f : f32
      glow.yield %1 : f32
    } : f32
    glow.yield %0 : f32
  } : tensor<2xf32>
}

// -----

glow_high.func @ascending(%x: tensor<2x3x4xf32>) {
  // expected-error@+2 {{dimensions of a row ascend, got [2, 1]}}
  %y = glow_high.generic %x {maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i)>], iterators = ["parallel", "reduction", "reduction"]} {
  ^bb0(%row: !glow.row<f32, [2, 1]>):
  } : tensor<2xf32>
}

// -----

glow_high.func @two_dimensions(%x: tensor<2x3xf32>) {
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterators = ["reduction", "reduction"]} {
  ^bb0(%row: !glow.row<f32, [0, 1]>):
    // expected-error@+1 {{positions are along one dimension, not [0, 1]}}
    %place = glow.stage(%row) over [0, 1] fold [last_minimumf] along [0, 1] {
    ^bb1(%e: f32):
      glow.yield %e : f32
    } : i32
    glow.yield %place : i32
  } : tensor<i32>
}

// -----

glow_high.func @indices_of_bytes(%x: tensor<2x3xf32>) {
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterators = ["parallel", "row"]} {
  ^bb0(%row: !glow.row<f32, [1]>):
    // expected-error@+1 {{indices are i32 or i64 along one dimension, not !glow.row<i8, [1]>}}
    %at = glow.indices : !glow.row<i8, [1]>
    glow.yield %at : !glow.row<i8, [1]>
  } : tensor<2x3xi8>
}

// -----

glow_high.func @parallel_indices(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{indices are along 0, which is parallel, or none}}
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterators = ["parallel", "row"]} {
  ^bb0(%row: !glow.row<f32, [1]>):
    %at = glow.indices : !glow.row<i32, [0]>
    glow.yield %at : !glow.row<i32, [0]>
  } : tensor<2x3xi32>
}

// -----

// What is refused is not printed.
// CHECK-NOT: @word
// CHECK: glow_high.func @fine(
// CHECK-NOT: @word
glow_high.func @fine(%x: tensor<2x3xf32>) {
  %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%e: f32):
    %0 = arith.negf %e : f32
    glow.yield %0 : f32
  } : tensor<2x3xf32>
}
