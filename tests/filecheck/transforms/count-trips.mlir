// Loops that go on while a counter is on one side of a bound have a number of trips.

// RUN: glow-opt %s -p count-trips | filecheck %s

// CHECK-LABEL: glow_high.func @known(
// CHECK:         glow_high.loop %[[I:.*]] = 5 (%{{.*}} = %zero, %{{.*}} = %x) {
// CHECK-NEXT:      %[[K:.*]] = glow_high.cast %[[I]] {to = i32} : tensor<i32>
// CHECK-NEXT:      %{{.*}} = glow_high.cast %[[K]] {to = f32} : tensor<f32>
// CHECK:           glow_high.yield %next, %0{{$}}
glow_high.func @known(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = glow_high.splat {value = 0 : i32} : tensor<i32>
  %five = glow_high.splat {value = 5 : i32} : tensor<i32>
  %yes = glow_high.splat {value = true} : tensor<i1>
  %last, %sum = glow_high.loop %i while %yes (%k = %zero, %a = %x) {
    %f = glow_high.cast %k {to = f32} : tensor<f32>
    %0 = glow_high.add %a, %f : tensor<4xf32>
    %one = glow_high.splat {value = 1 : i32} : tensor<i32>
    %next = glow_high.add %k, %one : tensor<i32>
    %more = glow_high.less %next, %five : tensor<i1>
    glow_high.yield %more, %next, %0
  } : tensor<i32>, tensor<4xf32>
  glow_high.return %sum
}

// 17, 14, 11 and 8; the counter is 5 behind the loop.

// CHECK-LABEL: glow_high.func @down(
// CHECK-DAG:     %[[END:.*]] = glow_high.splat {value = 4} : tensor<i64>
// CHECK-DAG:     glow_high.mul %[[END]],
// CHECK:         glow_high.loop %[[I:.*]] = 4 (
// CHECK-NEXT:      %[[STEP:.*]] = glow_high.splat {value = -3} : tensor<i64>
// CHECK-NEXT:      %[[M:.*]] = glow_high.mul %[[I]], %[[STEP]]
// CHECK-NEXT:      %[[S:.*]] = glow_high.splat {value = 17} : tensor<i64>
// CHECK-NEXT:      %{{.*}} = glow_high.add %[[M]], %[[S]]
glow_high.func @down(%x: tensor<f32>) -> (tensor<i64>, tensor<f32>) {
  %start = glow_high.splat {value = 17 : i64} : tensor<i64>
  %three = glow_high.splat {value = 3 : i64} : tensor<i64>
  %seven = glow_high.splat {value = 7 : i64} : tensor<i64>
  %yes = glow_high.splat {value = true} : tensor<i1>
  %last, %sum = glow_high.loop %i while %yes (%k = %start, %a = %x) {
    %f = glow_high.cast %k {to = f32} : tensor<f32>
    %0 = glow_high.add %a, %f : tensor<f32>
    %next = glow_high.sub %k, %three : tensor<i64>
    %enough = glow_high.greater %seven, %next : tensor<i1>
    %more = glow_high.not %enough : tensor<i1>
    glow_high.yield %more, %next, %0
  } : tensor<i64>, tensor<f32>
  glow_high.return %last, %sum
}

// A bound that is computed: the trips are counted in front of the loop.

// CHECK-LABEL: glow_high.func @computed(
// CHECK:         %[[T:.*]] = glow_high.cast %n {to = i64} : tensor<i64>
// CHECK-NEXT:    %{{.*}} = glow_high.loop %{{.*}} = %[[T]] (
glow_high.func @computed(%x: tensor<f32>, %n: tensor<i32>) -> tensor<f32> {
  %zero = glow_high.splat {value = 0 : i32} : tensor<i32>
  %first = glow_high.less %zero, %n : tensor<i1>
  %last, %sum = glow_high.loop %i while %first (%k = %zero, %a = %x) {
    %0 = glow_high.sqrt %a : tensor<f32>
    %one = glow_high.splat {value = 1 : i32} : tensor<i32>
    %next = glow_high.add %k, %one : tensor<i32>
    %more = glow_high.less %next, %n : tensor<i1>
    glow_high.yield %more, %next, %0
  } : tensor<i32>, tensor<f32>
  glow_high.return %sum
}

// If something else decides on the first trip, there are none where it does not run.

// CHECK-LABEL: glow_high.func @decided(
// CHECK:         %[[FIRST:.*]] = glow_high.reshape %first
// CHECK:         %[[T:.*]] = glow_high.where %[[FIRST]],
// CHECK:         glow_high.loop %{{.*}} = %[[T]] (
glow_high.func @decided(%x: tensor<f32>, %n: tensor<i32>, %first: tensor<i1>) -> tensor<f32> {
  %zero = glow_high.splat {value = 0 : i32} : tensor<i32>
  %last, %sum = glow_high.loop %i while %first (%k = %zero, %a = %x) {
    %0 = glow_high.sqrt %a : tensor<f32>
    %one = glow_high.splat {value = 1 : i32} : tensor<i32>
    %next = glow_high.add %k, %one : tensor<i32>
    %more = glow_high.less %next, %n : tensor<i1>
    glow_high.yield %more, %next, %0
  } : tensor<i32>, tensor<f32>
  glow_high.return %sum
}

// A counter that would wrap around, or that might, is left alone.

// CHECK-LABEL: glow_high.func @wraps(
// CHECK:         glow_high.loop %{{.*}} while
// CHECK:         glow_high.loop %{{.*}} while
glow_high.func @wraps(%x: tensor<f32>, %n: tensor<i8>) -> tensor<f32> {
  %zero = glow_high.splat {value = 0 : i8} : tensor<i8>
  %fifty = glow_high.splat {value = 50 : i8} : tensor<i8>
  %bound = glow_high.splat {value = 120 : i8} : tensor<i8>
  %yes = glow_high.splat {value = true} : tensor<i1>
  %last, %sum = glow_high.loop %i while %yes (%k = %zero, %a = %x) {
    %0 = glow_high.sqrt %a : tensor<f32>
    %next = glow_high.add %k, %fifty : tensor<i8>
    %more = glow_high.less %next, %bound : tensor<i1>
    glow_high.yield %more, %next, %0
  } : tensor<i8>, tensor<f32>
  %end, %all = glow_high.loop %i while %yes (%k = %zero, %a = %sum) {
    %0 = glow_high.sqrt %a : tensor<f32>
    %next = glow_high.add %k, %fifty : tensor<i8>
    %more = glow_high.less %next, %n : tensor<i1>
    glow_high.yield %more, %next, %0
  } : tensor<i8>, tensor<f32>
  glow_high.return %all
}

// Rows are as many as the trips: a condition that always holds goes, and one that ends the loop early stays.

// CHECK-LABEL: glow_high.func @rows(
// CHECK:         glow_high.loop %{{.*}} = 8 (%{{.*}} = %zero) over
// CHECK:         glow_high.loop %{{.*}} = 8 while
glow_high.func @rows(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %zero = glow_high.splat {value = 0 : i64} : tensor<i64>
  %one = glow_high.splat {value = 1 : i64} : tensor<i64>
  %eight = glow_high.splat {value = 8 : i64} : tensor<i64>
  %five = glow_high.splat {value = 5 : i64} : tensor<i64>
  %yes = glow_high.splat {value = true} : tensor<i1>
  %last, %all = glow_high.loop %i = 8 while %yes (%k = %zero) over (%row = %x) {
    %next = glow_high.add %k, %one : tensor<i64>
    %more = glow_high.less_or_equal %next, %eight : tensor<i1>
    glow_high.yield %more, %next, %row
  } : tensor<i64>, tensor<8x4xf32>
  %end, %some = glow_high.loop %i = 8 while %yes (%k = %zero) over (%row = %x) {
    %next = glow_high.add %k, %one : tensor<i64>
    %more = glow_high.less %next, %five : tensor<i1>
    glow_high.yield %more, %next, %row
  } : tensor<i64>, tensor<8x4xf32>
  glow_high.return %all, %some
}
