// What holds of instructions, and the place where it does not.

// RUN: glow-opt %s -p verify-low --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_low.func @sound(
glow_high.constant @c : tensor<4xf32> {value = dense<1.0> : tensor<4xf32>}
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_low.func @sound(@x, @y) {
  %c = glow_low.weight @c : memref<4xf32>
  %x = glow_low.weight @x : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  %0 = glow_low.alloc : memref<8xf32>
  %low = glow_low.view %0 : memref<8xf32> to memref<4xf32>
  %high = glow_low.view %0 : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  glow_low.add @out %low, @in %x, @in %c
  glow_low.softmax @out %high, @in %low
  glow_low.relu @out %high, @in %high
  glow_low.copy @out %y, @in %high
  glow_low.dealloc @out %0
}

// Columns of one buffer lie between each other, and are apart.

// CHECK: glow_low.func @columns(
glow_low.func @columns(@x, @y) {
  %x = glow_low.weight @x : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  %0 = glow_low.alloc : memref<4x2xf32>
  %left = glow_low.view %0 : memref<4x2xf32> to memref<4xf32, strided<[2]>>
  %right = glow_low.view %0 : memref<4x2xf32> to memref<4xf32, strided<[2], offset: 1>>
  glow_low.copy @out %left, @in %x
  glow_low.softmax @out %right, @in %left
  glow_low.copy @out %y, @in %right
  glow_low.dealloc @out %0
}

// -----

// What has no elements needs no writer.

// CHECK: glow_low.func @empty(
glow_high.placeholder @y : tensor<2x0xf32> {output}
glow_low.func @empty(@y) {
  %y = glow_low.weight @y {mutable} : memref<2x0xf32>
  %0 = glow_low.alloc : memref<2x0xf32>
  glow_low.neg @out %y, @in %0
  glow_low.dealloc @out %0
}

// Windows that move alike are the same buffer in every trip.

// CHECK: glow_low.func @alike(
glow_high.placeholder @s : tensor<8xf32> {state}
glow_low.func @alike(@s) {
  %s = glow_low.weight @s {mutable} : memref<8xf32>
  glow_low.loop %i = 2 {
    %a = glow_low.window %s[%i by 4] : memref<8xf32> to memref<4xf32>
    %b = glow_low.window %s[%i by 4] : memref<8xf32> to memref<4xf32>
    glow_low.relu @out %a, @in %b
  }
}

// CHECK-NOT: glow_low.func

// -----

// expected-error@+1 {{@high is still a function of glow_high}}
glow_high.func @high() {
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
// expected-error@+1 {{a glow_low.func does not hold glow_high.get}}
glow_low.func @tensor(@x) {
  %x = glow_high.get @x : tensor<4xf32>
}

// -----

glow_low.func @unknown_storage() {
  // expected-error@+1 {{there is no storage @nowhere}}
  %x = glow_low.weight @nowhere : memref<4xf32>
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_low.func @other_type(@x) {
  // expected-error@+1 {{@x is tensor<4xf32>, the weight memref<4xi32>}}
  %x = glow_low.weight @x : memref<4xi32>
}

// -----

// Storage is dense, whatever a weight says.

glow_high.placeholder @x : tensor<2x2xf32> {input}
glow_low.func @gaps(@x) {
  // expected-error@+1 {{@x is tensor<2x2xf32>, the weight memref<2x2xf32, strided<[4, 1]>>}}
  %x = glow_low.weight @x : memref<2x2xf32, strided<[4, 1]>>
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_low.func @not_bound() {
  // expected-error@+1 {{@x is no binding of @not_bound}}
  %x = glow_low.weight @x : memref<4xf32>
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_low.func @mutable_input(@x) {
  // expected-error@+1 {{@x cannot be mutable}}
  %x = glow_low.weight @x {mutable} : memref<4xf32>
}

// -----

glow_low.func @constant(@in %x: memref<4xf32>) {
  %view = glow_low.view %x : memref<4xf32> to memref<2x2xf32>
  %0 = glow_low.alloc : memref<2x2xf32>
  glow_low.splat @out %0 {value = 1.0}
  // expected-error@+1 {{glow_low.relu writes @out result, which is constant}}
  glow_low.relu @out %view, @in %0
}

// -----

glow_low.func @undefined(@out %y: memref<4xf32>) {
  %0 = glow_low.alloc : memref<4xf32>
  // expected-error@+1 {{glow_low.neg reads @in input before anything writes it}}
  glow_low.neg @out %y, @in %0
  glow_low.dealloc @out %0
}

// -----

glow_low.func @dead(@out %y: memref<4xf32>) {
  %0 = glow_low.alloc : memref<4xf32>
  %view = glow_low.view %0 : memref<4xf32> to memref<4xf32>
  glow_low.splat @out %0 {value = 1.0}
  glow_low.dealloc @out %0
  // expected-error@+1 {{glow_low.neg uses @in input after its dealloc}}
  glow_low.neg @out %y, @in %view
}

// -----

glow_low.func @twice() {
  %0 = glow_low.alloc : memref<4xf32>
  glow_low.dealloc @out %0
  // expected-error@+1 {{glow_low.dealloc uses @out buffer after its dealloc}}
  glow_low.dealloc @out %0
}

// -----

glow_low.func @leak() {
  // expected-error@+1 {{the allocation is never deallocated}}
  %0 = glow_low.alloc : memref<4xf32>
}

// -----

glow_high.placeholder @s : tensor<2x2xf32> {state}
glow_low.func @in_place(@s) {
  %s = glow_low.weight @s {mutable} : memref<2x2xf32>
  // expected-error@+1 {{glow_low.matmul: @out result and @in left overlap}}
  glow_low.matmul @out %s, @in %s, @in %s
}

// -----

glow_high.placeholder @s : tensor<8xf32> {state}
glow_low.func @partly(@s) {
  %s = glow_low.weight @s {mutable} : memref<8xf32>
  %low = glow_low.view %s : memref<8xf32> to memref<4xf32>
  %middle = glow_low.view %s : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
  // expected-error@+1 {{glow_low.relu: @out result and @in input overlap}}
  glow_low.relu @out %low, @in %middle
}

// -----

glow_high.placeholder @s : tensor<2x2xf32> {state}
glow_low.func @transposed(@s) {
  %s = glow_low.weight @s {mutable} : memref<2x2xf32>
  // expected-error@+1 {{glow_low.stack: @out targets and @in sources overlap}}
  glow_low.stack @out %s, @in %s {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%0: f32):
    glow_low.yield %0 : f32
  }
}

// -----

glow_high.placeholder @s : tensor<4xf32> {state}
glow_low.func @declared_twice(@s) {
  %0 = glow_low.weight @s {mutable} : memref<4xf32>
  // expected-error@+1 {{@s is declared twice}}
  %1 = glow_low.weight @s {mutable} : memref<4xf32>
}

// -----

// Inside loops the same holds.

glow_low.func @undefined_in_loop(@out %y: memref<8xf32>) {
  %0 = glow_low.alloc : memref<8xf32>
  glow_low.loop %i = 2 {
    %a = glow_low.window %0[%i by 4] : memref<8xf32> to memref<4xf32>
    %b = glow_low.window %y[%i by 4] : memref<8xf32> to memref<4xf32>
    // expected-error@+1 {{glow_low.neg reads @in input before anything writes it}}
    glow_low.neg @out %b, @in %a
  }
  glow_low.dealloc @out %0
}

// -----

glow_low.func @constant_in_loops(@in %x: memref<8xf32>) {
  glow_low.loop %i = 2 {
    glow_low.loop %j = 2 {
      %a = glow_low.window %x[%i by 4, %j by 2] : memref<8xf32> to memref<2xf32>
      // expected-error@+1 {{glow_low.splat writes @out result, which is constant}}
      glow_low.splat @out %a {value = 1.0}
    }
  }
}

// -----

glow_low.func @dead_in_loop(@out %y: memref<8xf32>) {
  %0 = glow_low.alloc : memref<8xf32>
  glow_low.splat @out %0 {value = 1.0}
  glow_low.dealloc @out %0
  glow_low.loop %i = 2 {
    %a = glow_low.window %0[%i by 4] : memref<8xf32> to memref<4xf32>
    %b = glow_low.window %y[%i by 4] : memref<8xf32> to memref<4xf32>
    // expected-error@+1 {{glow_low.neg uses @in input after its dealloc}}
    glow_low.neg @out %b, @in %a
  }
}

// -----

// Windows that do not move alike are the same buffer in the first trip only.

glow_high.placeholder @s : tensor<8xf32> {state}
glow_low.func @moved(@s) {
  %s = glow_low.weight @s {mutable} : memref<8xf32>
  glow_low.loop %i = 2 {
    %a = glow_low.window %s[%i by 4] : memref<8xf32> to memref<4xf32>
    %b = glow_low.window %s[%i by 2] : memref<8xf32> to memref<4xf32>
    // expected-error@+1 {{glow_low.relu: @out result and @in input overlap}}
    glow_low.relu @out %a, @in %b
  }
}

// -----

glow_high.placeholder @y : tensor<4xf32> {output}
// expected-error@+1 {{output @y is never written}}
glow_low.func @undeclared_output(@y) {
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<8xf32> {output}
glow_low.func @half_of_an_output(@x, @y) {
  %x = glow_low.weight @x : memref<4xf32>
  // expected-error@+1 {{some elements of output @y are never written}}
  %y = glow_low.weight @y {mutable} : memref<8xf32>
  %half = glow_low.view %y : memref<8xf32> to memref<4xf32>
  glow_low.copy @out %half, @in %x
}

// -----

glow_low.func @output_read_first(@out %y: memref<4xf32>) {
  // expected-error@+1 {{glow_low.relu reads @in input before anything writes it}}
  glow_low.relu @out %y, @in %y
}

// -----

glow_low.func @half_of_an_allocation(@in %x: memref<4xf32>, @out %y: memref<8xf32>) {
  %0 = glow_low.alloc : memref<8xf32>
  %half = glow_low.view %0 : memref<8xf32> to memref<4xf32, strided<[2]>>
  glow_low.copy @out %half, @in %x
  // expected-error@+1 {{glow_low.relu reads elements of @in input that nothing has written}}
  glow_low.relu @out %y, @in %0
  glow_low.dealloc @out %0
}

// -----

glow_low.func @window_ahead(@in %x: memref<4xf32>, @out %y: memref<8xf32>) {
  %0 = glow_low.alloc : memref<12xf32>
  glow_low.loop %i = 2 {
    %part = glow_low.window %0[%i by 4] : memref<12xf32> to memref<4xf32>
    glow_low.copy @out %part, @in %x
    %ahead = glow_low.window %0[%i by 4] : memref<12xf32> to memref<4xf32, strided<[1], offset: 4>>
    %out = glow_low.window %y[%i by 4] : memref<8xf32> to memref<4xf32>
    // expected-error@+1 {{glow_low.relu reads elements of @in input that nothing has written}}
    glow_low.relu @out %out, @in %ahead
  }
  glow_low.dealloc @out %0
}

// -----

// What several windows of a trip were written with is read as one.

// CHECK-LABEL: glow_low.func @window_in_parts(
glow_low.func @window_in_parts(@in %x: memref<2xf32>, @out %y: memref<8xf32>, @out %z: memref<8xf32>) {
  glow_low.loop %i = 2 {
    %left = glow_low.window %y[%i by 4] : memref<8xf32> to memref<2xf32>
    %right = glow_low.window %y[%i by 4] : memref<8xf32> to memref<2xf32, strided<[1], offset: 2>>
    glow_low.copy @out %left, @in %x
    glow_low.copy @out %right, @in %x
    %both = glow_low.window %y[%i by 4] : memref<8xf32> to memref<4xf32>
    %out = glow_low.window %z[%i by 4] : memref<8xf32> to memref<4xf32>
    glow_low.relu @out %out, @in %both
  }
}

// -----

// Windows of no elements need not move.

// CHECK-LABEL: glow_low.func @no_elements(
glow_low.func @no_elements(@in %x: memref<0xf32>, @out %y: memref<2x0xf32>) {
  glow_low.loop %i = 2 {
    %0 = glow_low.window %y[%i by 0] : memref<2x0xf32> to memref<0xf32>
    glow_low.relu @out %0, @in %x
  }
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @s : tensor<4xf32> {state}
glow_low.func @same_trips(@x, @s) {
  %x = glow_low.weight @x : memref<4xf32>
  %s = glow_low.weight @s {mutable} : memref<4xf32>
  // expected-error@+1 {{the 9223372036854775807 trips of the loop are all the same: its windows do not move}}
  glow_low.loop %i = 9223372036854775807 {
    %0 = glow_low.window %s[%i by 0] : memref<4xf32> to memref<4xf32>
    glow_low.relu @out %0, @in %x
  }
}

// -----

// Packed state is what one function makes, all of it, and others read.

glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.placeholder @p : tensor<2x4xf32> {packed_by = @pack}
glow_low.func @pack(@s, @p) {
  %s = glow_low.weight @s {mutable} : memref<4xf32>
  // expected-error@+1 {{some elements of output @p are never written}}
  %p = glow_low.weight @p {mutable} : memref<2x4xf32>
  %0 = glow_low.view %p : memref<2x4xf32> to memref<4xf32>
  glow_low.copy @out %0, @in %s
}

// -----

glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.placeholder @p : tensor<4xf32> {packed_by = @pack}
glow_low.func @pack(@s, @p) {
  %s = glow_low.weight @s {mutable} : memref<4xf32>
  %p = glow_low.weight @p {mutable} : memref<4xf32>
  glow_low.copy @out %p, @in %s
}
glow_low.func @other(@s, @p) {
  // expected-error@+1 {{@p cannot be mutable}}
  %p = glow_low.weight @p {mutable} : memref<4xf32>
  glow_low.fill @out %p {value = 0.0}
}

// -----

glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.placeholder @p : tensor<4xf32> {packed_by = @pack}
glow_low.func @pack(@s, @p) {
  %s = glow_low.weight @s {mutable} : memref<4xf32>
  %p = glow_low.weight @p {mutable} : memref<4xf32>
  glow_low.copy @out %p, @in %s
  // expected-error@+1 {{a function that packs @s writes it}}
  glow_low.fill @out %s {value = 7.0}
}
