// Chains of stages, printed and parsed back.

// RUN: glow-opt %s | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s
// RUN: glow-opt %s -p 'glow-high-to-glow-low' | glow-opt | filecheck %s --check-prefix=LOW

#ij = affine_map<(d0, d1) -> (d0, d1)>
#i = affine_map<(d0, d1) -> (d0)>
#j = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: glow_high.func @softmax(
// CHECK:         %0 = glow_high.generic %x {maps = [#map, #map], iterators = ["parallel", "row"]} {
// CHECK-NEXT:    ^bb0(%row: !glow.row<f32, [1]>):
// CHECK-NEXT:      %peak = glow.stage(%row) over [1] fold [maxnumf] along [1] {
// CHECK-NEXT:      ^bb{{[0-9]+}}(%e: f32):
// CHECK-NEXT:        glow.yield %e : f32
// CHECK-NEXT:      } : f32
// CHECK-NEXT:      %sum, %powers = glow.stage(%row) over [1] fold [add] along [1] {
// CHECK:           } : f32, !glow.row<f32, [1]>
// CHECK-NEXT:      %quotients = glow.stage(%powers) over [1] {
// CHECK:           } : !glow.row<f32, [1]>
// CHECK-NEXT:      glow.yield %{{.*}} : !glow.row<f32, [1]>
// CHECK-NEXT:    } : tensor<8x16xf32>

// LOW-LABEL: glow_low.func @softmax(
// LOW:         glow_low.generic @out %{{.*}}, @in %x {maps = [#map, #map], iterators = ["parallel", "row"]} {
// LOW-NEXT:    ^bb0(%{{.*}}: !glow.row<f32, [1]>):
// LOW-NEXT:      %{{.*}} = glow.stage(%{{.*}}) over [1] fold [maxnumf] along [1] {
glow_high.func @softmax(%x: tensor<8x16xf32>) {
  %0 = glow_high.generic %x {maps = [#ij, #ij], iterators = ["parallel", "row"]} {
  ^bb0(%row: !glow.row<f32, [1]>):
    %peak = glow.stage(%row) over [1] fold [maxnumf] along [1] {
    ^bb1(%e: f32):
      glow.yield %e : f32
    } : f32
    %sum, %powers = glow.stage(%row) over [1] fold [add] along [1] {
    ^bb1(%e: f32):
      %difference = arith.subf %e, %peak : f32
      %power = math.exp %difference : f32
      glow.yield %power, %power : f32, f32
    } : f32, !glow.row<f32, [1]>
    %quotients = glow.stage(%powers) over [1] {
    ^bb1(%e: f32):
      %quotient = arith.divf %e, %sum : f32
      glow.yield %quotient : f32
    } : !glow.row<f32, [1]>
    glow.yield %quotients : !glow.row<f32, [1]>
  } : tensor<8x16xf32>
}

// The index of the first largest element, and all indices beside it.

// CHECK-LABEL: glow_high.func @hardmax(
// CHECK:           %place = glow.stage(%row) over [1] fold [first_maximumf] along [1] {
// CHECK:           } : i32
// CHECK-NEXT:      %at = glow.indices : !glow.row<i32, [1]>
// CHECK-NEXT:      %ones = glow.stage(%at) over [1] {

// LOW-LABEL: glow_low.func @hardmax(
// LOW:           %{{.*}} = glow.indices : !glow.row<i32, [1]>
glow_high.func @hardmax(%x: tensor<8x16xf32>) {
  %0 = glow_high.generic %x {maps = [#ij, #ij], iterators = ["parallel", "row"]} {
  ^bb0(%row: !glow.row<f32, [1]>):
    %place = glow.stage(%row) over [1] fold [first_maximumf] along [1] {
    ^bb1(%e: f32):
      glow.yield %e : f32
    } : i32
    %at = glow.indices : !glow.row<i32, [1]>
    %ones = glow.stage(%at) over [1] {
    ^bb1(%index: i32):
      %is_place = arith.cmpi eq, %index, %place : i32
      %one = arith.uitofp %is_place : i1 to f32
      glow.yield %one : f32
    } : !glow.row<f32, [1]>
    glow.yield %ones : !glow.row<f32, [1]>
  } : tensor<8x16xf32>
}

// Sums of all elements behind each one.

// CHECK-LABEL: glow_high.func @sums_behind(
// CHECK:           %sums = glow.stage(%row) over [1] fold [before_add_back] along [1] {
// CHECK:           } : !glow.row<f32, [1]>

// LOW-LABEL: glow_low.func @sums_behind(
glow_high.func @sums_behind(%x: tensor<8x16xf32>) {
  %0 = glow_high.generic %x {maps = [#ij, #ij], iterators = ["parallel", "row"]} {
  ^bb0(%row: !glow.row<f32, [1]>):
    %sums = glow.stage(%row) over [1] fold [before_add_back] along [1] {
    ^bb1(%e: f32):
      glow.yield %e : f32
    } : !glow.row<f32, [1]>
    glow.yield %sums : !glow.row<f32, [1]>
  } : tensor<8x16xf32>
}

// A scalar for each point, an operand that broadcasts, and a row of which there are no elements before run time.

// CHECK-LABEL: glow_high.func @dot(
// CHECK:         %0 = glow_high.generic %x, %w {maps = [#map, affine_map<(d0, d1) -> (d1)>, #map1], iterators = ["parallel", "reduction"]} {
// CHECK:         } : tensor<?xf32, #glow.sizes<[batch], batch = 1 to 8>>
glow_high.func @dot(%x: tensor<?x16xf32, #glow.sizes<[batch], batch = 1 to 8>>, %w: tensor<16xf32>) {
  %0 = glow_high.generic %x, %w {maps = [#ij, #j, #i], iterators = ["parallel", "reduction"]} {
  ^bb0(%row: !glow.row<f32, [1]>, %weights: !glow.row<f32, [1]>):
    %sum = glow.stage(%row, %weights) over [1] fold [add] along [1] {
    ^bb1(%a: f32, %b: f32):
      %product = arith.mulf %a, %b : f32
      glow.yield %product : f32
    } : f32
    %root = math.sqrt %sum : f32
    glow.yield %root : f32
  } : tensor<?xf32, #glow.sizes<[batch], batch = 1 to 8>>
}

// Rows that indices select, and a sum of elements whose indices are columns of another operand.

// CHECK-LABEL: glow_high.func @rows(
// CHECK:         %0 = glow_high.generic %table, %at {maps = [affine_map<(d0, d1)[s0] -> (s0, d1)>, #map1, #map], iterators = ["parallel", "parallel"], indices = [1], index_maps = [#map1], failure = "no such row"} {

// LOW-LABEL: glow_low.func @rows(
// LOW:         glow_low.generic @out %{{.*}}, @in %table, @in %at {maps = [affine_map<(d0, d1)[s0] -> (s0, d1)>,
glow_high.func @rows(%table: tensor<9x16xf32>, %at: tensor<8xi64>) {
  %0 = glow_high.generic %table, %at {maps = [affine_map<(d0, d1)[s0] -> (s0, d1)>, #i, #ij], iterators = ["parallel", "parallel"], indices = [1], index_maps = [#i], failure = "no such row"} {
  ^bb0(%e: f32, %i: i64):
    %negated = arith.negf %e : f32
    glow.yield %negated : f32
  } : tensor<8x16xf32>
}

// CHECK-LABEL: glow_high.func @tuples(
// CHECK:         %0 = glow_high.generic %x, %at {maps = [affine_map<(d0, d1)[s0, s1] -> (s1, s0)>,
// CHECK-SAME:      indices = [1, 1], index_maps = [#map2, affine_map<(d0, d1) -> (d0, d1, 1)>]
glow_high.func @tuples(%x: tensor<9x16xf32>, %at: tensor<8x5x2xi32>) {
  %0 = glow_high.generic %x, %at {maps = [affine_map<(d0, d1)[s0, s1] -> (s1, s0)>, affine_map<(d0, d1) -> (d0, d1, 0)>, #i], iterators = ["parallel", "reduction"], indices = [1, 1], index_maps = [affine_map<(d0, d1) -> (d0, d1, 0)>, affine_map<(d0, d1) -> (d0, d1, 1)>], failure = "an index is out of range"} {
  ^bb0(%row: !glow.row<f32, [1]>, %i: !glow.row<i32, [1]>):
    %sum = glow.stage(%row) over [1] fold [add] along [1] {
    ^bb1(%a: f32):
      glow.yield %a : f32
    } : f32
    glow.yield %sum : f32
  } : tensor<8xf32>
}

// Windows: maps that are sums, and the sizes of dimensions that no operand has as an axis.

// CHECK-LABEL: glow_high.func @windows(
// CHECK:         %{{.*}} = glow_high.generic %x {maps = [affine_map<(d0, d1, d2) -> ((((d0 * 2) + d2) + -1), d1)>, {{.*}}], iterators = ["parallel", "parallel", "reduction"], extents = [5, 3]} {
// CHECK-NEXT:    ^bb0(%row: !glow.row<f32, [2]>):

// LOW-LABEL: glow_low.func @windows(
// LOW:         glow_low.generic @out %{{.*}}, @in %x {maps = [affine_map<(d0, d1, d2) -> ((((d0 * 2) + d2) + -1), d1)>, {{.*}}], iterators = ["parallel", "parallel", "reduction"], extents = [5, 3]} {
glow_high.func @windows(%x: tensor<9x16xf32>) {
  %0 = glow_high.generic %x {maps = [affine_map<(h, c, p) -> (h * 2 + p - 1, c)>, affine_map<(h, c, p) -> (h, c)>],
                             iterators = ["parallel", "parallel", "reduction"], extents = [5, 3]} {
  ^bb0(%row: !glow.row<f32, [2]>):
    %largest = glow.stage(%row) over [2] fold [maximumf] along [2] {
    ^bb1(%e: f32):
      glow.yield %e : f32
    } : f32
    glow.yield %largest : f32
  } : tensor<5x16xf32>
}
