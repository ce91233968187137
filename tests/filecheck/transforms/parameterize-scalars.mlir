// Numbers in which bodies differ become parameters of the code that they share.

// RUN: glow-opt %s -p parameterize-scalars --split-input-file | filecheck %s

// Scales and zero points differ: they are parameters, in both. What is the same in both stays a constant.

// CHECK-LABEL: glow_low.func @layers
// CHECK:         ^bb0
// CHECK:           arith.constant {glow_low.parameter = 0 : i64} 2.500000e-01 : f32
// CHECK:           arith.constant 3.000000e+00 : f32
// CHECK:           arith.constant {glow_low.parameter = 1 : i64} 1.370000e+02 : f32
// CHECK:         ^bb
// CHECK:           arith.constant {glow_low.parameter = 0 : i64} 5.000000e-01 : f32
// CHECK:           arith.constant 3.000000e+00 : f32
// CHECK:           arith.constant {glow_low.parameter = 1 : i64} 1.290000e+02 : f32

// A zero point of 0 has simpler code, which others do not share.

// CHECK:         ^bb
// CHECK:           arith.constant 7.500000e-01 : f32
// CHECK:           arith.constant 0.000000e+00 : f32
glow_high.placeholder @x : tensor<20xf32> {input}
glow_high.placeholder @y : tensor<20xi8> {output}
glow_high.placeholder @z : tensor<20xi8> {output}
glow_high.placeholder @w : tensor<20xi8> {output}
glow_low.func @layers(@x, @y, @z, @w) {
  %x = glow_low.weight @x : memref<20xf32>
  %y = glow_low.weight @y {mutable} : memref<20xi8>
  %z = glow_low.weight @z {mutable} : memref<20xi8>
  %w = glow_low.weight @w {mutable} : memref<20xi8>
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"]} {
  ^bb0(%e: f32):
    %scale = arith.constant 0.25 : f32
    %scaled = arith.divf %e, %scale : f32
    %three = arith.constant 3.0 : f32
    %tripled = arith.mulf %scaled, %three : f32
    %rounded = math.roundeven %tripled : f32
    %zero = arith.constant 137.0 : f32
    %shifted = arith.addf %rounded, %zero : f32
    %code = arith.fptoui %shifted : f32 to i8
    glow_low.yield %code : i8
  }
  glow_low.stack @out %z, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"]} {
  ^bb0(%e: f32):
    %scale = arith.constant 0.5 : f32
    %scaled = arith.divf %e, %scale : f32
    %three = arith.constant 3.0 : f32
    %tripled = arith.mulf %scaled, %three : f32
    %rounded = math.roundeven %tripled : f32
    %zero = arith.constant 129.0 : f32
    %shifted = arith.addf %rounded, %zero : f32
    %code = arith.fptoui %shifted : f32 to i8
    glow_low.yield %code : i8
  }
  glow_low.stack @out %w, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"]} {
  ^bb0(%e: f32):
    %scale = arith.constant 0.75 : f32
    %scaled = arith.divf %e, %scale : f32
    %three = arith.constant 3.0 : f32
    %tripled = arith.mulf %scaled, %three : f32
    %rounded = math.roundeven %tripled : f32
    %zero = arith.constant 0.0 : f32
    %shifted = arith.addf %rounded, %zero : f32
    %code = arith.fptoui %shifted : f32 to i8
    glow_low.yield %code : i8
  }
}

// -----

// Bounds of clips stay constants; stacks of other sizes share no code.

// CHECK-LABEL: glow_low.func @others
// CHECK-NOT:     glow_low.parameter
glow_high.placeholder @x : tensor<20xf32> {input}
glow_high.placeholder @v : tensor<10xf32> {input}
glow_high.placeholder @y : tensor<20xf32> {output}
glow_high.placeholder @z : tensor<20xf32> {output}
glow_high.placeholder @w : tensor<10xf32> {output}
glow_low.func @others(@x, @v, @y, @z, @w) {
  %x = glow_low.weight @x : memref<20xf32>
  %v = glow_low.weight @v : memref<10xf32>
  %y = glow_low.weight @y {mutable} : memref<20xf32>
  %z = glow_low.weight @z {mutable} : memref<20xf32>
  %w = glow_low.weight @w {mutable} : memref<10xf32>
  glow_low.stack @out %y, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"]} {
  ^bb0(%e: f32):
    %bound = arith.constant 6.0 : f32
    %clipped = arith.minimumf %e, %bound : f32
    %factor = arith.constant 0.5 : f32
    %scaled = arith.mulf %clipped, %factor : f32
    glow_low.yield %scaled : f32
  }
  glow_low.stack @out %z, @in %x {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"]} {
  ^bb0(%e: f32):
    %bound = arith.constant 7.0 : f32
    %clipped = arith.minimumf %e, %bound : f32
    %factor = arith.constant 0.5 : f32
    %scaled = arith.mulf %clipped, %factor : f32
    glow_low.yield %scaled : f32
  }
  glow_low.stack @out %w, @in %v {maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterators = ["parallel"]} {
  ^bb0(%e: f32):
    %bound = arith.constant 6.0 : f32
    %clipped = arith.minimumf %e, %bound : f32
    %factor = arith.constant 0.25 : f32
    %scaled = arith.mulf %clipped, %factor : f32
    glow_low.yield %scaled : f32
  }
}
