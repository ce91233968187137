// Elementwise instructions over one index space that share buffers become one loop.

// RUN: glow-opt %s -p stack,shorten-lifetimes,verify-low --split-input-file | filecheck %s
// RUN: glow-opt %s -p stack --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// A chain: what only the chain reads stays in registers.

// CHECK-LABEL: glow_low.func @chain(
// CHECK-NOT:     glow_low.alloc
// CHECK:         glow_low.stack @out %y, @in %x {maps = [#map, #map], iterators = ["parallel"]} {
// CHECK-NEXT:    ^{{.*}}(%[[A:.*]]: f32):
// CHECK-NEXT:      %[[B:.*]] = math.exp %[[A]] : f32
// CHECK-NEXT:      %[[C:.*]] = arith.negf %[[B]] : f32
// CHECK-NEXT:      glow_low.yield %[[C]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// LOCATIONS: glow_low.stack
// LOCATIONS:   math.exp {{.*}} loc("first")
// LOCATIONS:   arith.negf {{.*}} loc("second")
// LOCATIONS:   glow_low.yield {{.*}} loc(fused["first", "second"])
// LOCATIONS: } loc(fused["first", "second"])
glow_low.func @chain(@in %x: memref<4xf32>, @out %y: memref<4xf32>) {
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.exp @out %0, @in %x loc("first")
  glow_low.neg @out %y, @in %0 loc("second")
  glow_low.dealloc @out %0
}

// -----

// What is read behind the run is stored as well, once; neighbours that read the same join.

// CHECK-LABEL: glow_low.func @several(
// CHECK:         glow_low.stack @out %a, @out %b, @in %x {
// CHECK:           arith.negf
// CHECK:           math.absf
// CHECK:           glow_low.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK:         glow_low.matmul @out %y, @in %a, @in %b
glow_low.func @several(@in %x: memref<2x2xf32>, @out %y: memref<2x2xf32>) {
  %a = glow_low.alloc : memref<2x2xf32>
  %b = glow_low.alloc : memref<2x2xf32>
  glow_low.neg @out %a, @in %x
  glow_low.abs @out %b, @in %x
  glow_low.matmul @out %y, @in %a, @in %b
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
}

// -----

// Operands broadcast by their maps; splats are constants of the body.

// CHECK-LABEL: glow_low.func @broadcast(
// CHECK:         glow_low.stack @out %y, @in %x, @in %row, @in %column {maps = [#map{{[0-9]*}}, #map{{[0-9]*}}, {{.*}}, {{.*}}], iterators = ["parallel", "parallel"]} {
// CHECK:           arith.addf
// CHECK:           arith.mulf
// CHECK:           %[[C:.*]] = arith.constant 5.000000e-01 : f32
// CHECK:           arith.subf %{{.*}}, %[[C]] : f32
// CHECK-NOT:     glow_low.splat
glow_low.func @broadcast(@in %x: memref<2x3xf32>, @in %row: memref<3xf32>, @in %column: memref<2x1xf32>, @out %y: memref<2x3xf32>) {
  %0 = glow_low.alloc : memref<2x3xf32>
  %1 = glow_low.alloc : memref<2x3xf32>
  %half = glow_low.alloc : memref<f32>
  glow_low.add @out %0, @in %x, @in %row
  glow_low.mul @out %1, @in %0, @in %column
  glow_low.splat @out %half {value = 0.5}
  glow_low.sub @out %y, @in %1, @in %half
  glow_low.dealloc @out %0
  glow_low.dealloc @out %1
  glow_low.dealloc @out %half
}

// -----

// Instructions between the members of a stack do not matter, if they do not meet its buffers.

// CHECK-LABEL: glow_low.func @apart(
// CHECK:         glow_low.stack @out %b, @in %row
// CHECK:         glow_low.softmax @out %c, @in %b
// CHECK:         glow_low.stack @out %y, @in %x, @in %c
// CHECK:           arith.negf
// CHECK-NEXT:      arith.addf
glow_low.func @apart(@in %x: memref<2x3xf32>, @in %row: memref<1x3xf32>, @out %y: memref<2x3xf32>) {
  %a = glow_low.alloc : memref<2x3xf32>
  %b = glow_low.alloc : memref<1x3xf32>
  %c = glow_low.alloc : memref<1x3xf32>
  glow_low.neg @out %a, @in %x
  glow_low.abs @out %b, @in %row
  glow_low.softmax @out %c, @in %b
  glow_low.add @out %y, @in %a, @in %c
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
  glow_low.dealloc @out %c
}

// -----

// They end it where they read what it wrote, or where waiting would keep two buffers alive instead of one.

// CHECK-LABEL: glow_low.func @ended(
// CHECK:         glow_low.stack @out %a, @in %x
// CHECK:         glow_low.softmax @out %b, @in %a
// CHECK:         glow_low.stack @out %c, @in %a, @in %b
// CHECK:         glow_low.softmax @out %d, @in %x
// CHECK:         glow_low.stack @out %y, @in %c, @in %d
glow_low.func @ended(@in %x: memref<4xf32>, @out %y: memref<4xf32>) {
  %a = glow_low.alloc : memref<4xf32>
  %b = glow_low.alloc : memref<4xf32>
  %c = glow_low.alloc : memref<4xf32>
  %d = glow_low.alloc : memref<4xf32>
  glow_low.neg @out %a, @in %x
  glow_low.softmax @out %b, @in %a {axis = 0}
  glow_low.add @out %c, @in %a, @in %b
  glow_low.softmax @out %d, @in %x {axis = 0}
  glow_low.mul @out %y, @in %c, @in %d
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
  glow_low.dealloc @out %c
  glow_low.dealloc @out %d
}

// -----

// What shares no buffer saves nothing together, and stays apart; so does what has another index space.

// CHECK-LABEL: glow_low.func @independent(
// CHECK:         glow_low.stack @out %y, @in %x
// CHECK-NEXT:    ^
// CHECK-NEXT:      arith.negf
// CHECK-NEXT:      glow_low.yield
// CHECK:         glow_low.stack @out %z, @in %w
// CHECK:         glow_low.stack @out %v, @in %w
glow_low.func @independent(@in %x: memref<4xf32>, @in %w: memref<4xf32>, @out %y: memref<4xf32>, @out %z: memref<4xf32>, @out %v: memref<2x4xf32>) {
  %s = glow_low.alloc : memref<2x1xf32>
  glow_low.splat @out %s {value = 2.0 : f32}
  glow_low.neg @out %y, @in %x
  glow_low.abs @out %z, @in %w
  glow_low.add @out %v, @in %w, @in %s
  glow_low.dealloc @out %s
}

// -----

// A run ends where an instruction reads through another view what the run wrote, or writes what it read.

// CHECK-LABEL: glow_low.func @hazards(
// CHECK:         glow_low.stack @out %a, @in %x
// CHECK:         glow_low.stack @out %y, @in %first, @in %x
// CHECK:         glow_low.stack @out %a, @out %z, @in %x
glow_low.func @hazards(@in %x: memref<4xf32>, @out %y: memref<4xf32>, @out %z: memref<4xf32>) {
  %a = glow_low.alloc : memref<4xf32>
  %first = glow_low.view %a : memref<4xf32> to memref<1xf32>
  glow_low.neg @out %a, @in %x
  glow_low.add @out %y, @in %first, @in %x
  glow_low.abs @out %a, @in %x
  glow_low.neg @out %z, @in %a
  glow_low.dealloc @out %a
}

// -----

// A splat whose buffer has another content later is no constant, and ends a run.

// CHECK-LABEL: glow_low.func @splats(
// CHECK:         glow_low.splat @out %s {value = 1.0
// CHECK-NEXT:    glow_low.stack @out %y, @in %x, @in %s
// CHECK:         glow_low.splat @out %s {value = 2.0
// CHECK-NEXT:    glow_low.stack @out %z, @in %x, @in %s
glow_low.func @splats(@in %x: memref<4xf32>, @out %y: memref<4xf32>, @out %z: memref<4xf32>) {
  %s = glow_low.alloc : memref<4xf32>
  glow_low.splat @out %s {value = 1.0}
  glow_low.add @out %y, @in %x, @in %s
  glow_low.splat @out %s {value = 2.0}
  glow_low.add @out %z, @in %x, @in %s
  glow_low.dealloc @out %s
}

// -----

// What nothing reads is not computed; integers without sign keep their bits in the body.

// CHECK-LABEL: glow_low.func @dead(
// CHECK-NEXT:    glow_low.stack @out %y, @in %x
// CHECK-NEXT:    ^{{.*}}(%{{.*}}: i8):
// CHECK:           arith.constant -1 : i8
// CHECK:           arith.minui
// CHECK-NOT:     glow_low.stack
glow_low.func @dead(@in %x: memref<4xui8>, @out %y: memref<4xui8>) {
  %a = glow_low.alloc : memref<2xf32>
  %b = glow_low.alloc : memref<2xf32>
  %most = glow_low.alloc : memref<ui8>
  glow_low.splat @out %a {value = 1.0}
  glow_low.neg @out %b, @in %a
  glow_low.splat @out %most {value = 255 : ui8}
  glow_low.min @out %y, @in %x, @in %most
  glow_low.dealloc @out %a
  glow_low.dealloc @out %b
  glow_low.dealloc @out %most
}

// -----

// What an instruction in place reads comes from outside; a member behind it reads what it wrote.

// CHECK-LABEL: glow_low.func @in_place(
// CHECK:         glow_low.stack @out %s, @out %y, @in %s {
// CHECK-NEXT:    ^{{.*}}(%[[S:.*]]: f32):
// CHECK-NEXT:      %[[A:.*]] = arith.addf %[[S]], %[[S]] : f32
// CHECK-NEXT:      %[[N:.*]] = arith.negf %[[A]] : f32
// CHECK-NEXT:      glow_low.yield %[[A]], %[[N]] : f32, f32
glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_low.func @in_place(@s, @y) {
  %s = glow_low.weight @s {mutable} : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  glow_low.add @out %s, @in %s, @in %s
  glow_low.neg @out %y, @in %s
}
