// Mistakes in stacks.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_low.func @wrong(@in %x: memref<4x6xf32>, @out %y: memref<4x6xf32>) {
  // expected-error @below {{2 operands need as many maps, got 1}}
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}

// -----

glow_low.func @wrong(@in %x: memref<4x6xf32>, @out %y: memref<4x6xf32>) {
  // expected-error @below {{map (d0) -> (d0, d0) has not 2 dimensions}}
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0) -> (d0, d0)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}

// -----

glow_low.func @wrong(@in %s: memref<6xf32>, @out %y: memref<4x6xf32>) {
  // expected-error @below {{map (d0, d1) -> (d0, d1) does not fit shape (6,)}}
  glow_low.stack @out %y, @in %s {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}

// -----

glow_low.func @wrong(@in %s: memref<6xf32>, @out %y: memref<4x6xf32>) {
  // expected-error @below {{dimension d0 is 4 and 6 long}}
  glow_low.stack @out %y, @in %s {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}

// -----

glow_low.func @wrong(@in %s: memref<6xf32>, @out %y: memref<4x6xf32>) {
  // expected-error @below {{map (d0, d1) -> ((d0 + d1)) yields (d0 + d1), neither a dimension nor 0}}
  glow_low.stack @out %y, @in %s {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0 + d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}

// -----

glow_low.func @wrong(@in %s: memref<6xf32>, @out %y: memref<4x6xf32>) {
  // expected-error @below {{map (d0, d1) -> (1) yields 1, neither a dimension nor 0}}
  glow_low.stack @out %y, @in %s {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}

// -----

glow_low.func @wrong(@in %s: memref<6xf32>, @out %y1: memref<6xf32>) {
  // expected-error @below {{some dimension of the index space has no operand}}
  glow_low.stack @out %y1, @in %s {maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}

// -----

glow_low.func @wrong(@in %x: memref<4x6xf32>, @out %y: memref<4x6xf32>) {
  // expected-error @below {{the body must take f32}}
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: i32):
    glow_low.yield %a : i32
  }
}

// -----

glow_low.func @wrong(@in %x: memref<4x6xf32>, @out %y: memref<4x6xf32>) {
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32):
    // expected-error @below {{arith.addf terminates block in single-block region but is not a terminator}}
    %b = arith.addf %a, %a : f32
  }
}

// -----

glow_low.func @wrong(@in %i: memref<4x6xi32>, @out %y: memref<4x6xf32>) {
  // expected-error @below {{the body must yield f32}}
  glow_low.stack @out %y, @in %i {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: i32):
    glow_low.yield %a : i32
  }
}

// -----

glow_low.func @wrong(@in %x: memref<4x6xf32>, @out %y: memref<4x6xf32>) {
  // expected-error @below {{the body must yield f32}}
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["parallel", "parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a, %a : f32, f32
  }
}

// -----

glow_low.func @iterators(@in %x: memref<4x6xf32>, @out %y: memref<4x6xf32>) {
  // expected-error @below {{an iterator of a stack is 'parallel', not "reduction"}}
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterators = ["reduction", "banana"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}

// -----

glow_low.func @nothing(@in %x: memref<0xf32>, @out %y: memref<4xf32>) {
  // expected-error @below {{map (d0) -> (0) reads the first of 0 elements}}
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>], iterators = ["parallel"]} {
  ^bb0(%a: f32):
    glow_low.yield %a : f32
  }
}
