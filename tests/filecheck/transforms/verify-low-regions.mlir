// What is surely written behind branches, and behind loops that may have no trip.

// RUN: glow-opt %s -p verify-low --split-input-file --verify-diagnostics | filecheck %s

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @flag : tensor<i1> {input}
glow_high.placeholder @y : tensor<4xf32> {output}

// CHECK-LABEL: glow_low.func @both_regions(@x, @flag, @y)
glow_low.func @both_regions(@x, @flag, @y) {
  %x = glow_low.weight @x : memref<4xf32>
  %flag = glow_low.weight @flag : memref<i1>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  %front = glow_low.view %y : memref<4xf32> to memref<2xf32>
  %back = glow_low.view %y : memref<4xf32> to memref<2xf32, strided<[1], offset: 2>>
  glow_low.if @in %flag {
    glow_low.relu @out %y, @in %x
  } else {
    glow_low.fill @out %front, @out %back {value = 0.0}
  }
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @flag : tensor<i1> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_low.func @one_region(@x, @flag, @y) {
  %x = glow_low.weight @x : memref<4xf32>
  %flag = glow_low.weight @flag : memref<i1>
  // expected-error@+1 {{output @y is never written}}
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  glow_low.if @in %flag {
    glow_low.relu @out %y, @in %x
  }
}

// -----

glow_low.func @undefined_condition(@in %x: memref<4xf32>, @out %y: memref<4xf32>) {
  %go = glow_low.alloc : memref<i1>
  // expected-error@+1 {{glow_low.if reads @in condition before anything writes it}}
  glow_low.if @in %go {
    glow_low.relu @out %y, @in %x
  }
  glow_low.dealloc @out %go
}

// -----

glow_high.placeholder @n : tensor<i64> {input}
glow_high.placeholder @s : tensor<4xf32> {state}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_low.func @no_trip(@n, @s, @y) {
  %n = glow_low.weight @n : memref<i64>
  %s = glow_low.weight @s {mutable} : memref<4xf32>
  // expected-error@+1 {{output @y is never written}}
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  glow_low.loop %i = @in %n {
    glow_low.relu @out %y, @in %s
    glow_low.neg @out %s, @in %s
  }
}

// -----

// What one trip left in memory of its own is gone in the next.

glow_high.placeholder @s : tensor<4xf32> {state}
glow_low.func @left(@s) {
  %s = glow_low.weight @s {mutable} : memref<4xf32>
  glow_low.loop %i = 2 {
    %0 = glow_low.alloc : memref<4xf32>
    // expected-error@+1 {{glow_low.add reads @in right before anything writes it}}
    glow_low.add @out %s, @in %s, @in %0
    glow_low.copy @out %0, @in %s
    glow_low.dealloc @out %0
  }
}

// -----

glow_high.placeholder @s : tensor<4xf32> {state}
glow_low.func @forgotten(@s) {
  %s = glow_low.weight @s {mutable} : memref<4xf32>
  glow_low.loop %i = 2 {
    // expected-error@+1 {{the allocation is never deallocated}}
    %0 = glow_low.alloc : memref<4xf32>
    glow_low.copy @out %0, @in %s
    glow_low.neg @out %s, @in %0
  }
}
