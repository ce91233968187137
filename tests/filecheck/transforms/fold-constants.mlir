// Operators on constants become constants, with the interpreter's result; small ones become splats.

// RUN: glow-opt %s -p fold-constants --split-input-file | filecheck %s
// RUN: glow-opt %s -p 'fold-constants{expansion=1 limit=64}' --split-input-file | filecheck %s --check-prefix=LIMIT
// RUN: glow-opt %s -p 'fold-constants{quantized=true}' --split-input-file | filecheck %s --check-prefix=NUMBERS
// RUN: not glow-opt %s -p 'fold-constants{limit=much}' 2>&1 | filecheck %s --check-prefix=OPTION

// A chain of operators folds as a whole; what depends on an input stays.

// CHECK-LABEL: glow_high.func @chain(
// CHECK-NEXT:    %[[SUM:.*]] = glow_high.get @[[NAME:.*]] : tensor<2xf32>
// CHECK-NEXT:    %{{.*}} = glow_high.mul %x, %[[SUM]]
glow_high.constant @a : tensor<2xf32> {value = dense<[1.0, 2.0]> : tensor<2xf32>}
glow_high.constant @b : tensor<2xf32> {value = dense<[0.5, -2.0]> : tensor<2xf32>}
glow_high.func @chain(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = glow_high.get @a : tensor<2xf32>
  %b = glow_high.get @b : tensor<2xf32>
  %sum = glow_high.add %a, %b : tensor<2xf32>
  %negative = glow_high.neg %sum : tensor<2xf32>
  %y = glow_high.mul %x, %negative : tensor<2xf32>
  glow_high.return %y
}

// -----

// A result of one element is a splat: it needs no storage.

// CHECK-LABEL: glow_high.func @splat(
// CHECK-NEXT:    %[[Y:.*]] = glow_high.splat {value = 3.0} : tensor<1x1xf32>
// CHECK-NEXT:    glow_high.return %[[Y]]
glow_high.constant @a : tensor<1x2xf32> {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>}
glow_high.func @splat() -> tensor<1x1xf32> {
  %a = glow_high.get @a : tensor<1x2xf32>
  %1 = glow_high.reduce_sum %a {axes = [1], keepdims = true} : tensor<1x1xf32>
  glow_high.return %1
}

// -----

// Splats and integers fold as well, to the type of the operator's result.

// CHECK-LABEL: glow_high.func @integers(
// CHECK-NEXT:    %[[Y:.*]] = glow_high.splat {value = 7 : i32} : tensor<i32>
// CHECK-NEXT:    glow_high.return %[[Y]]
glow_high.func @integers() -> tensor<i32> {
  %1 = glow_high.splat {value = 3 : i32} : tensor<i32>
  %2 = glow_high.splat {value = 4 : i32} : tensor<i32>
  %3 = glow_high.add %1, %2 : tensor<i32>
  glow_high.return %3
}

// -----

// A result larger than the limit stays an operator, unless it is no larger than its operands.

// CHECK-LABEL: glow_high.func @large(
// CHECK-NOT:     glow_high.expand
// LIMIT-LABEL: glow_high.func @large(
// LIMIT:         glow_high.expand
// LIMIT-NOT:     glow_high.transpose
glow_high.constant @a : tensor<1x4xf32> {value = dense<[[1.0, 2.0, 3.0, 4.0]]> : tensor<1x4xf32>}
glow_high.constant @b : tensor<8x4xi32> {value = dense<1> : tensor<8x4xi32>}
glow_high.placeholder @y : tensor<16x4xf32> {output}
glow_high.placeholder @z : tensor<4x8xi32> {output}
glow_high.func @large(@y, @z) {
  %a = glow_high.get @a : tensor<1x4xf32>
  %1 = glow_high.expand %a {shape = [16, 4]} : tensor<16x4xf32>
  glow_high.save %1, @y
  %b = glow_high.get @b : tensor<8x4xi32>
  %2 = glow_high.transpose %b {permutation = [1, 0]} : tensor<4x8xi32>
  glow_high.save %2, @z
}

// -----

// State is no constant, although a function may be its only writer.

// CHECK-LABEL: glow_high.func @state(
// CHECK:         glow_high.neg
glow_high.placeholder @s : tensor<2xf32> {state}
glow_high.func @state(@s) {
  %s = glow_high.get @s {mutable} : tensor<2xf32>
  %1 = glow_high.neg %s : tensor<2xf32>
  glow_high.save %1, @s
}

// -----

// Functions share storage: a folded constant gets a name that is free, equal constants are one, and the constant that both
// functions have read is erased behind the second one.

// CHECK-NOT: glow_high.constant @neg :
// CHECK: glow_high.constant @neg_1 : tensor<2xf32> {value = dense<[-1.0
// CHECK-NOT: glow_high.constant
// CHECK: glow_high.func @first(
// CHECK: glow_high.get @neg_1
// CHECK: glow_high.func @second(
// CHECK: glow_high.get @neg_1
glow_high.constant @neg : tensor<2xf32> {value = dense<[1.0, 2.0]> : tensor<2xf32>}
glow_high.func @first() -> tensor<2xf32> {
  %0 = glow_high.get @neg : tensor<2xf32>
  %1 = glow_high.neg %0 : tensor<2xf32>
  glow_high.return %1
}
glow_high.func @second() -> tensor<2xf32> {
  %0 = glow_high.get @neg : tensor<2xf32>
  %1 = glow_high.neg %0 : tensor<2xf32>
  glow_high.return %1
}

// -----

// Constants are plain integers: what says which codes they are stays.

// CHECK: glow_high.constant @quantize{{.*}} : tensor<2xui8> {value = dense<[130, 131]>
// CHECK: glow_high.func @codes(
// CHECK-NEXT:    %[[I:.*]] = glow_high.get @i
// CHECK-NEXT:    %[[C:.*]] = glow_high.storage_cast %[[I]] {to = !quant.uniform<u8:f32, 0.5:128>}
// CHECK-NEXT:    %[[J:.*]] = glow_high.get @quantize
// CHECK-NEXT:    %[[D:.*]] = glow_high.storage_cast %[[J]] {to = !quant.uniform<u8:f32, 0.5:128>}
// CHECK-NEXT:    glow_high.return %[[C]], %[[D]]
glow_high.constant @i : tensor<2xui8> {value = dense<[1, 2]> : tensor<2xui8>}
glow_high.constant @x : tensor<2xf32> {value = dense<[1.0, 1.5]> : tensor<2xf32>}
glow_high.func @codes() -> (tensor<2x!quant.uniform<u8:f32, 0.5:128>>, tensor<2x!quant.uniform<u8:f32, 0.5:128>>) {
  %i = glow_high.get @i : tensor<2xui8>
  %0 = glow_high.storage_cast %i {to = !quant.uniform<u8:f32, 0.5:128>} : tensor<2x!quant.uniform<u8:f32, 0.5:128>>
  %x = glow_high.get @x : tensor<2xf32>
  %1 = glow_high.quantize %x {to = !quant.uniform<u8:f32, 0.5:128>} : tensor<2x!quant.uniform<u8:f32, 0.5:128>>
  glow_high.return %0, %1
}

// -----

// Codes that an operator types become the numbers that they stand for where `codes` is given.

// CHECK-LABEL: glow_high.func @numbers(
// CHECK:         glow_high.dequantize
// NUMBERS: glow_high.constant @dequantize : tensor<2xf32> {value = dense<[-6.350000e+01, -6.300000e+01]>
// NUMBERS: glow_high.func @numbers(
// NUMBERS-NEXT:    %[[N:.*]] = glow_high.get @dequantize
// NUMBERS-NEXT:    glow_high.return %[[N]]
glow_high.constant @i : tensor<2xui8> {value = dense<[1, 2]> : tensor<2xui8>}
glow_high.func @numbers() -> tensor<2xf32> {
  %i = glow_high.get @i : tensor<2xui8>
  %0 = glow_high.storage_cast %i {to = !quant.uniform<u8:f32, 0.5:128>} : tensor<2x!quant.uniform<u8:f32, 0.5:128>>
  %1 = glow_high.dequantize %0 : tensor<2xf32>
  glow_high.return %1
}

// -----

// Many bytes that are only returned are computed if operands are much smaller; what another operator reads is folded.

// CHECK-LABEL: glow_high.func @returned(
// CHECK:         %[[WIDE:.*]] = glow_high.expand
// CHECK:         glow_high.return %[[WIDE]]
glow_high.constant @x : tensor<1x2xf32> {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>}
glow_high.func @returned() -> tensor<9000x2xf32> {
  %x = glow_high.get @x : tensor<1x2xf32>
  %0 = glow_high.expand %x {shape = [9000, 2]} : tensor<9000x2xf32>
  glow_high.return %0
}

// -----

// CHECK-LABEL: glow_high.func @read_again(
// CHECK-NOT:     glow_high.expand
// CHECK:         glow_high.add
glow_high.constant @x : tensor<1x2xf32> {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>}
glow_high.func @read_again(%y: tensor<9000x2xf32>) -> tensor<9000x2xf32> {
  %x = glow_high.get @x : tensor<1x2xf32>
  %0 = glow_high.expand %x {shape = [9000, 2]} : tensor<9000x2xf32>
  %1 = glow_high.add %0, %y : tensor<9000x2xf32>
  glow_high.return %1
}

// -----

// Neither is computed what takes longer than a copy, such as a sine, whether or not something else is behind it.

// CHECK-LABEL: glow_high.func @returned_sines(
// CHECK-NOT:     glow_high.expand
// CHECK-NOT:     glow_high.sin
// CHECK:         glow_high.return
glow_high.constant @x : tensor<1x2xf32> {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>}
glow_high.func @returned_sines() -> tensor<9000x2xf32> {
  %x = glow_high.get @x : tensor<1x2xf32>
  %0 = glow_high.expand %x {shape = [9000, 2]} : tensor<9000x2xf32>
  %1 = glow_high.sin %0 : tensor<9000x2xf32>
  glow_high.return %1
}

// -----

// CHECK-LABEL: glow_high.func @returned_product(
// CHECK-NOT:     glow_high.matmul
// CHECK:         glow_high.return
glow_high.constant @x : tensor<300x1xf32> {value = dense<1.0> : tensor<300x1xf32>}
glow_high.constant @y : tensor<1x300xf32> {value = dense<2.0> : tensor<1x300xf32>}
glow_high.func @returned_product() -> tensor<300x300xf32> {
  %x = glow_high.get @x : tensor<300x1xf32>
  %y = glow_high.get @y : tensor<1x300xf32>
  %0 = glow_high.matmul %x, %y : tensor<300x300xf32>
  glow_high.return %0
}

// OPTION: glow-opt: error: pass pipeline 'fold-constants{limit=much}':
