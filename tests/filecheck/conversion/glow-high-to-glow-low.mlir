// Each tensor becomes a buffer, each operator an instruction on addresses.

// RUN: glow-opt %s -p glow-high-to-glow-low,verify-low --split-input-file | filecheck %s
// RUN: glow-opt %s -p glow-high-to-glow-low --split-input-file --print-debuginfo | filecheck %s --check-prefix=LOCATIONS

// Weights are declared first, under the name of their storage; buffers live to the end of the function.

// CHECK-LABEL: glow_low.func @main(@x, @y) {
// CHECK-NEXT:    %x = glow_low.weight @x : memref<4xf32>
// CHECK-NEXT:    %c = glow_low.weight @c : memref<4xf32>
// CHECK-NEXT:    %y = glow_low.weight @y {mutable} : memref<4xf32>
// CHECK-NEXT:    %sum = glow_low.alloc : memref<4xf32>
// CHECK-NEXT:    glow_low.add @out %sum, @in %x, @in %c
// CHECK-NEXT:    %[[R:.*]] = glow_low.alloc : memref<4xf32>
// CHECK-NEXT:    glow_low.leaky_relu @out %[[R]], @in %sum {alpha = 0.25}
// CHECK-NEXT:    glow_low.copy @out %y, @in %[[R]]
// CHECK-NEXT:    glow_low.dealloc @out %sum
// CHECK-NEXT:    glow_low.dealloc @out %[[R]]
// CHECK-NEXT:  }
// CHECK-NOT:   glow_high.func

// LOCATIONS-LABEL: glow_low.func @main
// LOCATIONS:         glow_low.alloc : memref<4xf32> loc("Add_0")
// LOCATIONS-NEXT:    glow_low.add {{.*}} loc("Add_0")
// LOCATIONS:         glow_low.copy {{.*}} loc("y")
// LOCATIONS-NEXT:    glow_low.dealloc {{.*}} loc("Add_0")
glow_high.constant @c : tensor<4xf32> {value = dense<1.0> : tensor<4xf32>}
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %c = glow_high.get @c : tensor<4xf32>
  %sum = glow_high.add %x, %c : tensor<4xf32> loc("Add_0")
  %1 = glow_high.leaky_relu %sum {alpha = 0.25} : tensor<4xf32>
  glow_high.save %1, @y loc("y")
}

// -----

// Optional and variadic operands, several results, and a reshape, which is a view.

// CHECK-LABEL: glow_low.func @operands(
// CHECK:         %[[VIEW:.*]] = glow_low.view %x : memref<2x3xf32> to memref<6xf32>
// CHECK-NEXT:    %[[CLIP:.*]] = glow_low.alloc : memref<6xf32>
// CHECK-NEXT:    glow_low.clip @out %[[CLIP]], @in %[[VIEW]], @in none, @in %high
// CHECK-NEXT:    %[[CONCAT:.*]] = glow_low.alloc : memref<18xf32>
// CHECK-NEXT:    glow_low.concat @out %[[CONCAT]], @in %[[CLIP]], @in %[[VIEW]], @in %[[CLIP]] {axis = 0}
// CHECK-NEXT:    %[[VALUES:.*]] = glow_low.alloc : memref<5xf32>
// CHECK-NEXT:    %[[INDICES:.*]] = glow_low.alloc : memref<5xi64>
// CHECK-NEXT:    glow_low.top_k @out %[[VALUES]], @out %[[INDICES]], @in %[[CONCAT]] {{.*}}k = 5
glow_high.placeholder @x : tensor<2x3xf32> {input}
glow_high.placeholder @high : tensor<f32> {input}
glow_high.placeholder @y : tensor<5xi64> {output}
glow_high.func @operands(@x, @high, @y) {
  %x = glow_high.get @x : tensor<2x3xf32>
  %high = glow_high.get @high : tensor<f32>
  %1 = glow_high.reshape %x {shape = [6]} : tensor<6xf32>
  %2 = glow_high.clip %1, none, %high : tensor<6xf32>
  %3 = glow_high.concat %2, %1, %2 {axis = 0} : tensor<18xf32>
  %4, %5 = glow_high.top_k %3 {k = 5} : tensor<5xf32>, tensor<5xi64>
  glow_high.save %5, @y
}

// -----

// An input that goes straight to an output, and to two, is copied.

// CHECK-LABEL: glow_low.func @identity(
// CHECK:         glow_low.copy @out %y, @in %x
// CHECK-NEXT:    glow_low.copy @out %z, @in %x
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @z : tensor<4xf32> {output}
glow_high.func @identity(@x, @y, @z) {
  %x = glow_high.get @x : tensor<4xf32>
  glow_high.save %x, @y
  glow_high.save %x, @z
}

// -----

// State is read where it lies …

// CHECK-LABEL: glow_low.func @state(
// CHECK-NEXT:    %s = glow_low.weight @s {mutable} : memref<4xf32>
// CHECK-NEXT:    %[[NEW:.*]] = glow_low.alloc
// CHECK-NEXT:    glow_low.neg @out %[[NEW]], @in %s
// CHECK-NEXT:    glow_low.copy @out %s, @in %[[NEW]]
// CHECK-NEXT:    glow_low.dealloc
glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.func @state(@s) {
  %s = glow_high.get @s {mutable} : tensor<4xf32>
  %1 = glow_high.neg %s : tensor<4xf32>
  glow_high.save %1, @s
}

// -----

// … but copied where its value is needed after it has changed, also through a reshape.

// CHECK-LABEL: glow_low.func @overwritten(
// CHECK:         %[[OLD:.*]] = glow_low.alloc : memref<4xf32>
// CHECK-NEXT:    glow_low.copy @out %[[OLD]], @in %[[S:s.*]]
// CHECK-NEXT:    %[[VIEW:.*]] = glow_low.view %[[OLD]]
// CHECK:         glow_low.copy @out %[[S]],
// CHECK-NEXT:    glow_low.copy @out %y, @in %[[VIEW]]
glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.placeholder @y : tensor<2x2xf32> {output}
glow_high.func @overwritten(@s, @y) {
  %s = glow_high.get @s {mutable} : tensor<4xf32>
  %old = glow_high.reshape %s {shape = [2, 2]} : tensor<2x2xf32>
  %1 = glow_high.neg %s : tensor<4xf32>
  glow_high.save %1, @s
  glow_high.save %old, @y
}

// -----

// Several functions share the module's storage, each with declarations of its own.

// CHECK-LABEL: glow_low.func @first(@x) {
// CHECK-NEXT:    glow_low.weight @x
// CHECK-LABEL: glow_low.func @second(@x) {
// CHECK-NEXT:    glow_low.weight @x
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.func @first(@x) {
  %x = glow_high.get @x : tensor<4xf32>
}
glow_high.func @second(@x) {
  %x = glow_high.get @x : tensor<4xf32>
}

// -----

// State that is saved as it was read needs no copy.

// CHECK-LABEL: glow_low.func @unchanged(@s) {
// CHECK-NOT:     glow_low.copy
// CHECK:       }
glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.func @unchanged(@s) {
  %s = glow_high.get @s {mutable} : tensor<4xf32>
  %1 = glow_high.reshape %s {shape = [4]} : tensor<4xf32>
  glow_high.save %1, @s
}

// -----

// Products say into how many runs their rows split that are of one sample each: here the first axis of the input.

// CHECK-LABEL: glow_low.func @samples(
// CHECK:         glow_low.matmul @out %{{.*}}, @in %{{.*}}, @in %w {samples = 8}
// CHECK:         glow_low.matmul @out %{{.*}}, @in %{{.*}}, @in %w {samples = 16}
// CHECK:         glow_low.conv @out %{{.*}}, @in %{{.*}}, @in %f {samples = 8}
glow_high.constant @w : tensor<4x4xf32> {value = dense<1.0> : tensor<4x4xf32>}
glow_high.constant @f : tensor<4x1x4xf32> {value = dense<1.0> : tensor<4x1x4xf32>}
glow_high.placeholder @x : tensor<8x2x4xf32> {input}
glow_high.placeholder @y : tensor<8x2x4xf32> {output}
glow_high.placeholder @z : tensor<8x2x4xf32> {output}
glow_high.placeholder @a : tensor<8x2x4xf32> {output}
glow_high.func @samples(@x, @y, @z, @a) {
  %x = glow_high.get @x : tensor<8x2x4xf32>
  %w = glow_high.get @w : tensor<4x4xf32>
  %f = glow_high.get @f : tensor<4x1x4xf32>
  %rows = glow_high.reshape %x {shape = [16, 4]} : tensor<16x4xf32>
  %0 = glow_high.matmul %rows, %w : tensor<16x4xf32>
  %y = glow_high.reshape %0 {shape = [8, 2, 4]} : tensor<8x2x4xf32>
  %steps = glow_high.transpose %x {permutation = [1, 0, 2]} : tensor<2x8x4xf32>
  %1 = glow_high.matmul %steps, %w : tensor<2x8x4xf32>
  %z = glow_high.transpose %1 {permutation = [1, 0, 2]} : tensor<8x2x4xf32>
  %2 = glow_high.conv %x, %f : tensor<8x2x4xf32>
  glow_high.save %y, @y
  glow_high.save %z, @z
  glow_high.save %2, @a
}
