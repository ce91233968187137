// What no function may be made of: names, bindings and ops that machine code would take at their word.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// An input and an output may have the same name.

// CHECK: glow_low.func @sound(@x, @y)
glow_high.placeholder @x : tensor<4xf32> {input, label = "image"}
glow_high.placeholder @y : tensor<4xf32> {output, label = "image"}
glow_low.func @sound(@x, @y) {
}

// CHECK-NOT: glow_low.func

// -----

// expected-error@+1 {{@no.name is no name that C code can call}}
glow_low.func @no.name() {
}

// -----

glow_high.placeholder @x : tensor<4xf32> {state}
// expected-error@+1 {{@x is bound twice}}
glow_low.func @main(@x, @x) {
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input, label = "image"}
glow_high.placeholder @z : tensor<9xf32> {input, label = "image"}
// expected-error@+1 {{@z has a name 'image' that another binding has}}
glow_low.func @main(@x, @z) {
}

// -----

glow_high.placeholder @x : tensor<4xf32> {state}
glow_high.placeholder @z : tensor<9xf32> {output, label = "x"}
// expected-error@+1 {{@z has a name 'x' that another binding has}}
glow_low.func @main(@x, @z) {
}

// -----

// expected-error@+1 {{a glow_low.func does not hold arith.constant}}
glow_low.func @main() {
  %0 = arith.constant 1.0 : f32
}

// -----

// expected-error@+1 {{no tensor has elements of i7}}
glow_high.placeholder @x : tensor<4xi7> {input}

// -----

// expected-error@+1 {{the size '?' that no #glow.sizes tells is known at run time only}}
glow_high.placeholder @x : tensor<?xf32> {input}

// -----

// expected-error@+1 {{a tensor of 9223372036854775807 elements of f32 fits no memory}}
glow_high.placeholder @x : tensor<9223372036854775807xf32> {input}

// -----

glow_low.func @main() {
  // expected-error@+1 {{no allocation has elements of index}}
  %0 = glow_low.alloc : memref<4xindex>
}

// -----

glow_low.func @main() {
  // expected-error@+1 {{an allocation of 4611686018427387904 elements of f32 fits no memory}}
  %0 = glow_low.alloc : memref<1x4xf32, strided<[4611686018427387904, 1]>>
}

// -----

glow_low.func @main(@in %x: memref<3x3xf32>, @out %y: memref<3xf32>) {
  // expected-error@+1 {{yields a dimension twice}}
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0, d0)>], iterators = ["parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}

// -----

glow_low.func @main(@in %x: memref<3x4xf32>, @out %y: memref<3xf32>) {
  // expected-error@+1 {{of an @out writes elements once for each d1}}
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}

// -----

glow_low.func @main(@in %x: memref<3xf32>, @out %y: memref<3x4xf32>) {
  // expected-error@+1 {{of an @out leaves elements out}}
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0) -> (d0, 0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}

// -----

glow_low.func @main(@in %x: memref<3xf32>, @out %y: memref<3xf32>) {
  // expected-error@+1 {{a body does not hold llvm.mlir.undef}}
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"]} {
  ^bb0(%a: f32):
    %0 = llvm.mlir.undef : f32
    glow_low.yield %a : f32
  }
}
