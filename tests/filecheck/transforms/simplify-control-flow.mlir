// Branches that are known and loops of one trip are what they run; loops carry and read what they have to.

// RUN: glow-opt %s -p simplify-control-flow | filecheck %s
// RUN: glow-opt %s -p simplify-control-flow --mlir-print-debuginfo | filecheck %s --check-prefix=LOC

// LOC: glow_high.relu {{.*}} loc("chosen")
// LOC: glow_high.loop {{.*}} over {{.*}} {
// LOC: } : tensor<4x1xf32> loc("numbered")

glow_high.constant @yes : tensor<i1> {value = dense<true> : tensor<i1>}

// CHECK-LABEL: glow_high.func @known(
// CHECK-NEXT:    %[[R:.*]] = glow_high.relu %x : tensor<4xf32>
// CHECK-NEXT:    glow_high.return %[[R]]
glow_high.func @known(%x: tensor<4xf32>) -> tensor<4xf32> {
  %yes = glow_high.get @yes : tensor<i1>
  %0 = glow_high.if %yes {
    %1 = glow_high.relu %x : tensor<4xf32> loc("chosen")
    glow_high.yield %1
  } else {
    %2 = glow_high.neg %x : tensor<4xf32>
    glow_high.yield %2
  } : tensor<4xf32>
  glow_high.return %0
}

// A condition that is computed decides when it runs.

// CHECK-LABEL: glow_high.func @computed(
// CHECK:         glow_high.if %c {
glow_high.func @computed(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %0 = glow_high.if %c {
    glow_high.yield %x
  } else {
    %2 = glow_high.neg %x : tensor<4xf32>
    glow_high.yield %2
  } : tensor<4xf32>
  glow_high.return %0
}

// The only trip is number 0, and its row is all that there is.

// CHECK-LABEL: glow_high.func @once(
// CHECK:         %[[ROW:.*]] = glow_high.reshape %x {shape = [4]} : tensor<4xf32>
// CHECK-NEXT:    %[[SUM:.*]] = glow_high.add %a, %[[ROW]] : tensor<4xf32>
// CHECK-NEXT:    %[[STACK:.*]] = glow_high.reshape %[[SUM]] {shape = [1, 4]} : tensor<1x4xf32>
// CHECK-NEXT:    glow_high.return %[[SUM]], %[[STACK]]
glow_high.func @once(%x: tensor<1x4xf32>, %a: tensor<4xf32>) -> (tensor<4xf32>, tensor<1x4xf32>) {
  %last, %all = glow_high.loop %i = 1 (%b = %a) over (%row = %x) {
    %0 = glow_high.add %b, %row : tensor<4xf32>
    glow_high.yield %0, %0
  } : tensor<4xf32>, tensor<1x4xf32>
  glow_high.return %last, %all
}

// So it is where their size is known at run time only.

// CHECK-LABEL: glow_high.func @once_sized(
// CHECK:         %[[ROW:.*]] = glow_high.reshape %x {shape = #glow.sizes<[n], n = 0 to 6>}
// CHECK-NEXT:    %[[SUM:.*]] = glow_high.add %a, %[[ROW]]
// CHECK-NEXT:    %[[STACK:.*]] = glow_high.reshape %[[SUM]] {shape = #glow.sizes<[1, n], n = 0 to 6>}
// CHECK-NEXT:    glow_high.return %[[SUM]], %[[STACK]]
glow_high.func @once_sized(%x: tensor<1x?xf32, #glow.sizes<[n], n = 0 to 6>>, %a: tensor<?xf32, #glow.sizes<[n], n = 0 to 6>>) -> (tensor<?xf32, #glow.sizes<[n], n = 0 to 6>>, tensor<1x?xf32, #glow.sizes<[n], n = 0 to 6>>) {
  %last, %all = glow_high.loop %i = 1 (%b = %a) over (%row = %x) {
    %0 = glow_high.add %b, %row : tensor<?xf32, #glow.sizes<[n], n = 0 to 6>>
    glow_high.yield %0, %0
  } : tensor<?xf32, #glow.sizes<[n], n = 0 to 6>>, tensor<1x?xf32, #glow.sizes<[n], n = 0 to 6>>
  glow_high.return %last, %all
}

// What trips only hand on is the same in all of them, and what nothing uses is not yielded.

// CHECK-LABEL: glow_high.func @same(
// CHECK-NEXT:    %[[L:.*]] = glow_high.loop %{{.*}} = %n (%[[B:.*]] = %x) {
// CHECK-NEXT:      %[[S:.*]] = glow_high.add %[[B]], %y : tensor<4xf32>
// CHECK-NEXT:      glow_high.yield %[[S]]
// CHECK-NEXT:    } : tensor<4xf32>
// CHECK-NEXT:    glow_high.return %[[L]], %y
glow_high.func @same(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: tensor<i64>) -> (tensor<4xf32>, tensor<4xf32>) {
  %last, %kept, %unused = glow_high.loop %i = %n (%b = %x, %c = %y, %d = %x) {
    %0 = glow_high.add %b, %c : tensor<4xf32>
    %1 = glow_high.neg %x : tensor<4xf32>
    glow_high.yield %0, %c, %1
  } : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  glow_high.return %last, %kept
}

// CHECK-LABEL: glow_high.func @unused(
// CHECK:         %[[A:.*]] = glow_high.if %c {
// CHECK-NEXT:      glow_high.yield %x
// CHECK:         } : tensor<4xf32>
glow_high.func @unused(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %a, %b = glow_high.if %c {
    %1 = glow_high.exp %x : tensor<4xf32>
    glow_high.yield %x, %1
  } else {
    %2 = glow_high.neg %x : tensor<4xf32>
    glow_high.yield %2, %2
  } : tensor<4xf32>, tensor<4xf32>
  glow_high.return %a
}

// A slice by the number of the trip is a row, along whatever axis, and of those that there are trips for.

// CHECK-LABEL: glow_high.func @numbered(
// CHECK-NEXT:    %[[T:.*]] = glow_high.transpose %x {permutation = [1, 0]} : tensor<3x4xf32>
// CHECK-NEXT:    %[[S:.*]] = glow_high.slice %[[T]] {starts = [0, 0], ends = [2, 4]} : tensor<2x4xf32>
// CHECK-NEXT:    %{{.*}} = glow_high.loop %{{.*}} = 2 (%[[A:.*]] = %a) over (%[[ROW:.*]] = %[[S]]) {
// CHECK-NEXT:      %[[COLUMN:.*]] = glow_high.reshape %[[ROW]] {shape = [4, 1]} : tensor<4x1xf32>
// CHECK-NEXT:      %{{.*}} = glow_high.add %[[A]], %[[COLUMN]]
glow_high.func @numbered(%x: tensor<4x3xf32>, %a: tensor<4x1xf32>) -> tensor<4x1xf32> {
  %last = glow_high.loop %i = 2 (%b = %a) {
    %0 = glow_high.reshape %i {shape = [1]} : tensor<1xi64>
    %1 = glow_high.gather %x, %0 {axis = 1} : tensor<4x1xf32>
    %2 = glow_high.add %b, %1 : tensor<4x1xf32>
    glow_high.yield %2
  } : tensor<4x1xf32> loc("numbered")
  glow_high.return %last
}

// Each trip transposes back what the one before has transposed.

// CHECK-LABEL: glow_high.func @layout(
// CHECK-NEXT:    %[[X:.*]] = glow_high.transpose %x {permutation = [2, 0, 1]} : tensor<4x2x3xf32>
// CHECK-NEXT:    %[[L:.*]] = glow_high.loop %{{.*}} = %n (%[[A:.*]] = %[[X]]) {
// CHECK-NEXT:      %[[B:.*]] = glow_high.transpose %[[A]] {permutation = [1, 2, 0]} : tensor<2x3x4xf32>
// CHECK-NEXT:      %[[C:.*]] = glow_high.transpose %[[B]] {permutation = [2, 0, 1]} : tensor<4x2x3xf32>
// CHECK-NEXT:      %[[D:.*]] = glow_high.softmax %[[C]]
// CHECK-NEXT:      glow_high.yield %[[D]]
// CHECK-NEXT:    } : tensor<4x2x3xf32>
// CHECK-NEXT:    %[[R:.*]] = glow_high.transpose %[[L]] {permutation = [1, 2, 0]} : tensor<2x3x4xf32>
// CHECK-NEXT:    glow_high.return %[[R]]
glow_high.func @layout(%x: tensor<2x3x4xf32>, %n: tensor<i64>) -> tensor<2x3x4xf32> {
  %last = glow_high.loop %i = %n (%a = %x) {
    %0 = glow_high.transpose %a {permutation = [2, 0, 1]} : tensor<4x2x3xf32>
    %1 = glow_high.softmax %0 {axis = 0} : tensor<4x2x3xf32>
    %2 = glow_high.transpose %1 {permutation = [1, 2, 0]} : tensor<2x3x4xf32>
    glow_high.yield %2
  } : tensor<2x3x4xf32>
  glow_high.return %last
}

// There are more trips than slices, so that one fails.

// CHECK-LABEL: glow_high.func @beyond(
// CHECK:         glow_high.gather %x, %{{.*}} : tensor<3xf32>
glow_high.func @beyond(%x: tensor<4x3xf32>, %a: tensor<3xf32>) -> tensor<3xf32> {
  %last = glow_high.loop %i = 5 (%b = %a) {
    %1 = glow_high.gather %x, %i : tensor<3xf32>
    %2 = glow_high.add %b, %1 : tensor<3xf32>
    glow_high.yield %2
  } : tensor<3xf32>
  glow_high.return %last
}

// Slices and updates of one row by the number of the trip are rows that a loop goes over, and rows that it stacks.

// CHECK-LABEL: glow_high.func @rows_by_number(
// CHECK-NEXT:    %[[T:.*]] = glow_high.transpose %x {permutation = [1, 0]} : tensor<5x4xf32>
// CHECK-NEXT:    %[[Y:.*]] = glow_high.loop %{{.*}} = 5 over (%[[ROW:.*]] = %[[T]]) {
// CHECK-NEXT:      %[[C:.*]] = glow_high.reshape %[[ROW]] {shape = [4, 1]}
// CHECK-NEXT:      %[[D:.*]] = glow_high.neg %[[C]]
// CHECK-NEXT:      %[[E:.*]] = glow_high.reshape %[[D]] {shape = [4]}
// CHECK-NEXT:      glow_high.yield %[[E]]
// CHECK-NEXT:    } : tensor<5x4xf32>
// CHECK-NEXT:    %[[Z:.*]] = glow_high.transpose %[[Y]] {permutation = [1, 0]} : tensor<4x5xf32>
// CHECK-NEXT:    glow_high.return %[[Z]]
glow_high.func @rows_by_number(%x: tensor<4x5xf32>, %y: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = glow_high.loop %i = 5 (%z = %y) {
    %k = glow_high.cast %i {to = i32} : tensor<i32>
    %1 = glow_high.dynamic_slice %x, %k {axis = 1} : tensor<4x1xf32>
    %2 = glow_high.neg %1 : tensor<4x1xf32>
    %3 = glow_high.dynamic_update_slice %z, %2, %i {axis = 1} : tensor<4x5xf32>
    glow_high.yield %3
  } : tensor<4x5xf32>
  glow_high.return %0
}

// A slice of two rows is none, nor is an update of which a trip reads an earlier one; 300 trips have no number in i8.

// CHECK-LABEL: glow_high.func @not_rows(
// CHECK:         glow_high.dynamic_slice %x, %i {axis = 1, size = 2}
// CHECK:         glow_high.dynamic_update_slice %z,
// CHECK:         glow_high.dynamic_slice %w, %{{.*}} :
glow_high.func @not_rows(%x: tensor<4x5xf32>, %y: tensor<5x4xf32>, %w: tensor<300x4xf32>) -> (tensor<5x4xf32>, tensor<1x4xf32>) {
  %0 = glow_high.loop %i = 5 (%z = %y) {
    %1 = glow_high.dynamic_slice %x, %i {axis = 1, size = 2} : tensor<4x2xf32>
    %2 = glow_high.reshape %1 {shape = [2, 4]} : tensor<2x4xf32>
    %3 = glow_high.dynamic_slice %2, %i : tensor<1x4xf32>
    %4 = glow_high.dynamic_update_slice %z, %3, %i : tensor<5x4xf32>
    %5 = glow_high.add %4, %z : tensor<5x4xf32>
    glow_high.yield %5
  } : tensor<5x4xf32>
  %6 = glow_high.splat {value = 0.0} : tensor<1x4xf32>
  %7 = glow_high.loop %j = 300 (%s = %6) {
    %k = glow_high.cast %j {to = i8} : tensor<i8>
    %l = glow_high.cast %k {to = i64} : tensor<i64>
    %8 = glow_high.dynamic_slice %w, %l : tensor<1x4xf32>
    %9 = glow_high.add %s, %8 : tensor<1x4xf32>
    glow_high.yield %9
  } : tensor<1x4xf32>
  glow_high.return %0, %7
}
