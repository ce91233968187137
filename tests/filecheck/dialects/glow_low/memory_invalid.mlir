// Mistakes in declarations, allocation, views and copies.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_low.func @wrong() {
  // expected-error @below {{an allocation starts at offset 0; use a view for the rest}}
  %a = glow_low.alloc : memref<4xf32, strided<[1], offset: 2>>
}

// -----

glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_low.func @wrong(@y) {
  %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  // expected-error @below {{only an allocation can be deallocated}}
  glow_low.dealloc @out %y
}

// -----

glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_low.func @wrong(@x) {
  %x = glow_low.weight @x : memref<4x6xf32>
  // expected-error @below {{a view keeps the type in which elements are stored}}
  %v = glow_low.view %x : memref<4x6xf32> to memref<4x6xi32>
}

// -----

glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_low.func @wrong(@x) {
  %x = glow_low.weight @x : memref<4x6xf32>
  // expected-error @below {{the view reaches 25 elements into an allocation of 24}}
  %v = glow_low.view %x : memref<4x6xf32> to memref<25xf32>
}

// -----

glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_low.func @wrong(@x) {
  %x = glow_low.weight @x : memref<4x6xf32>
  // expected-error @below {{the view reaches 25 elements into an allocation of 24}}
  %v = glow_low.view %x : memref<4x6xf32> to memref<2x3xf32, strided<[12, 2], offset: 8>>
}

// -----

glow_high.placeholder @s : tensor<6xf32> {input}
glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_low.func @wrong(@s, @y) {
  %s = glow_low.weight @s : memref<6xf32>
  %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  // expected-error @below {{a copy's buffers have different shapes}}
  glow_low.copy @out %y, @in %s
}

// -----

glow_high.placeholder @i : tensor<4x6xi32> {input}
glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_low.func @wrong(@i, @y) {
  %i = glow_low.weight @i : memref<4x6xi32>
  %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  // expected-error @below {{a copy's buffers have different element types}}
  glow_low.copy @out %y, @in %i
}

// -----

glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_low.func @wrong(@y) {
  %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  // expected-error @+2 {{operand '@in source' of glow_low.copy is missing}}
  glow_low.copy @out %y
}

// -----

glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_low.func @wrong(@x, @y) {
  %x = glow_low.weight @x : memref<4x6xf32>
  %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  // expected-error @+2 {{glow_low.copy has too many operands behind @in}}
  glow_low.copy @out %y, @in %x, @in %x
}

// -----

glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_low.func @wrong(@x, @y) {
  %x = glow_low.weight @x : memref<4x6xf32>
  %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  // expected-error @below {{'@output' is no qualifier: use @out, @inout, @in or @scratch}}
  glow_low.copy @output %y, @in %x
}

// -----

glow_high.placeholder @s : tensor<6xf32> {input}
glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_low.func @wrong(@s, @y) {
  %s = glow_low.weight @s : memref<6xf32>
  %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  // expected-error @below {{@out has type memref<4x6xf32>, but tensor<6xf32> follows from the operands}}
  glow_low.relu @out %y, @in %s
}

// -----

glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_low.func @wrong(@x, @y) {
  %x = glow_low.weight @x : memref<4x6xf32>
  %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  // expected-error @below {{@out has type memref<4x6xf32>, but tensor<6x4xf32> follows from the operands}}
  glow_low.transpose @out %y, @in %x {permutation = [1, 0]}
}

// -----

glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_low.func @wrong(@x, @y) {
  %x = glow_low.weight @x : memref<4x6xf32>
  %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  // expected-error @below {{mode must be one of constant, edge, reflect, wrap, not 'none'}}
  glow_low.pad @out %y, @in %x {pads = [0, 0, 0, 0], mode = "none"}
}

// -----

glow_high.placeholder @y : tensor<4xf32> {output}
glow_low.func @wrong(@y) {
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  // expected-error @below {{a buffer is not of i64}}
  glow_low.fill @out %y {value = 1 : i64}
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{a fill needs a buffer}}
  glow_low.fill {value = 1.0}
}

// -----

glow_low.func @wrong() {
  %a = glow_low.alloc : memref<4xf32>
  // expected-error @below {{offset and strides of a view are numbers from 0 on}}
  %v = glow_low.view %a : memref<4xf32> to memref<4xf32, strided<[-1], offset: 3>>
}

// -----

glow_low.func @wrong() {
  %a = glow_low.alloc : memref<4xf32>
  // expected-error @below {{offset and strides of a view are numbers from 0 on}}
  %v = glow_low.view %a : memref<4xf32> to memref<4xf32, strided<[1], offset: ?>>
}

// -----

glow_low.func @wrong() {
  %a = glow_low.alloc : memref<4xf32>
  // expected-error @below {{the size '?' that no #glow.sizes tells is known at run time only}}
  %v = glow_low.view %a : memref<4xf32> to memref<?xf32>
}

// -----

glow_low.func @wrong() {
  %a = glow_low.alloc : memref<4xf32>
  // expected-error @+1 {{memref<5xf32>}}
  %v = glow_low.view %a : memref<5xf32> to memref<4xf32>
}

// -----

glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_high.placeholder @y : tensor<4x6xf32> {output}
glow_low.func @right(@x, @y) {
  %x = glow_low.weight @x : memref<4x6xf32>
  %y = glow_low.weight @y {mutable} : memref<4x6xf32>
  // An axis of one element has any stride; what is only read may repeat.
  %a = glow_low.alloc : memref<4x1x6xf32, strided<[6, 0, 1]>>
  %b = glow_low.alloc : memref<4x6xf32, strided<[1, 4]>>
  %c = glow_low.alloc : memref<0x6xf32, strided<[0, 0]>>
  %v = glow_low.view %x : memref<4x6xf32> to memref<4x6xf32, strided<[0, 1]>>
  glow_low.copy @out %y, @in %v
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{the size '?' that no #glow.sizes tells is known at run time only}}
  %a = glow_low.alloc : memref<?xf32>
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{offset and strides of an allocation are numbers from 0 on}}
  %a = glow_low.alloc : memref<4xf32, strided<[-1]>>
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{offset and strides of an allocation are numbers from 0 on}}
  %a = glow_low.alloc : memref<4xf32, strided<[?]>>
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{offset and strides of an allocation are numbers from 0 on}}
  %a = glow_low.alloc : memref<4xf32, strided<[1], offset: ?>>
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{offset and strides of an allocation are numbers from 0 on}}
  %a = glow_low.alloc : memref<2x2xf32, affine_map<(d0, d1) -> (d1, d0)>>
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{elements of an allocation share a place}}
  %a = glow_low.alloc : memref<4xf32, strided<[0]>>
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{elements of an allocation share a place}}
  %a = glow_low.alloc : memref<4x6xf32, strided<[1, 1]>>
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{elements of an allocation share a place}}
  %a = glow_low.alloc : memref<4x6xf32, strided<[5, 1]>>
}

// -----

glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_low.func @wrong(@x) {
  %x = glow_low.weight @x : memref<4x6xf32>
  %a = glow_low.alloc : memref<24xf32>
  %v = glow_low.view %a : memref<24xf32> to memref<4x6xf32, strided<[0, 1]>>
  // expected-error @below {{@out target is written, and its elements share places}}
  glow_low.copy @out %v, @in %x
}

// -----

glow_high.placeholder @x : tensor<4x6xf32> {input}
glow_low.func @wrong(@x) {
  %x = glow_low.weight @x : memref<4x6xf32>
  %a = glow_low.alloc : memref<24xf32>
  %v = glow_low.view %a : memref<24xf32> to memref<4x6xf32, strided<[2, 1]>>
  // expected-error @below {{@out result is written, and its elements share places}}
  glow_low.relu @out %v, @in %x
}

// -----

glow_high.placeholder @x : tensor<2x2xf32> {input}
glow_low.func @wrong(@x) {
  // expected-error @below {{the size '?' that no #glow.sizes tells is known at run time only}}
  %x = glow_low.weight @x : memref<2x?xf32>
}

// -----

glow_high.placeholder @x : tensor<2x2xf32> {input}
glow_low.func @wrong(@x) {
  // expected-error @below {{offset and strides of a weight are numbers from 0 on}}
  %x = glow_low.weight @x : memref<2x2xf32, affine_map<(d0, d1) -> (d1, d0)>>
}

// -----

glow_high.placeholder @x : tensor<2x2xf32> {input}
glow_low.func @wrong(@x) {
  // expected-error @below {{offset and strides of a weight are numbers from 0 on}}
  %x = glow_low.weight @x : memref<2x2xf32, strided<[2, 1], offset: ?>>
}

// -----

glow_low.func @wrong() {
  // expected-error @below {{an allocation has a stride for each axis}}
  %a = glow_low.alloc : memref<4x6xf32, strided<[1]>>
}
