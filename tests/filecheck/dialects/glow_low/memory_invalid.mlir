// Mistakes in declarations, allocation, views and copies.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_low.func @wrong(@out %y: memref<4x6xf32>) {
  // expected-error @+2 {{operand '@in source' of glow_low.copy is missing}}
  glow_low.copy @out %y
}

// -----

glow_low.func @wrong(@in %x: memref<4x6xf32>, @out %y: memref<4x6xf32>) {
  // expected-error @+2 {{glow_low.copy has too many operands behind @in}}
  glow_low.copy @out %y, @in %x, @in %x
}

// -----

glow_low.func @wrong() {
  %a = glow_low.alloc : memref<4xf32>
  // expected-error @+1 {{memref<5xf32>}}
  %v = glow_low.view %a : memref<5xf32> to memref<4xf32>
}

// -----

glow_low.func @right(@in %x: memref<4x6xf32>, @out %y: memref<4x6xf32>) {
  // An axis of one element has any stride; what is only read may repeat.
  %a = glow_low.alloc : memref<4x1x6xf32, strided<[6, 0, 1]>>
  %b = glow_low.alloc : memref<4x6xf32, strided<[1, 4]>>
  %c = glow_low.alloc : memref<0x6xf32, strided<[0, 0]>>
  %v = glow_low.view %x : memref<4x6xf32> to memref<4x6xf32, strided<[0, 1]>>
  glow_low.copy @out %y, @in %v
}

// -----

glow_low.func @wrong(@in %x: memref<4x6xf32>) {
  %a = glow_low.alloc : memref<24xf32>
  %v = glow_low.view %a : memref<24xf32> to memref<4x6xf32, strided<[0, 1]>>
  // expected-error @below {{@out target is written, and its elements share places}}
  glow_low.copy @out %v, @in %x
}

// -----

glow_low.func @wrong(@in %x: memref<4x6xf32>) {
  %a = glow_low.alloc : memref<24xf32>
  %v = glow_low.view %a : memref<24xf32> to memref<4x6xf32, strided<[2, 1]>>
  // expected-error @below {{@out result is written, and its elements share places}}
  glow_low.relu @out %v, @in %x
}
