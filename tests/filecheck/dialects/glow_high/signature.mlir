// Functions written with arguments and results, whose storage has no names in text.

// RUN: glow-opt %s | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | filecheck %s --check-prefix=STORAGE
// RUN: GLOW_ROUNDTRIP

glow_high.constant @c : tensor<4xf32> {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}

// STORAGE: "glow_high.placeholder"() <{sym_name = "one.x", type = tensor<4xf32>, input, label = "x"}>
// STORAGE-NEXT: "glow_high.placeholder"() <{sym_name = "one.result", type = tensor<4xf32>, output, label = "result"}>
// STORAGE-NEXT: "glow_high.func"() <{sym_name = "one", bindings = [@one.x, @one.result]}>
// STORAGE-NEXT: %x = "glow_high.get"() <{symbol = @one.x}>
// CHECK-LABEL: glow_high.func @one(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    %0 = glow_high.relu %x : tensor<4xf32>
// CHECK-NEXT:    glow_high.return %0
// CHECK-NEXT:  }
glow_high.func @one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = glow_high.relu %x : tensor<4xf32>
  glow_high.return %0
}

// CHECK-NEXT:  glow_high.func @several(%a: tensor<4xf32>, %b: tensor<i64>) -> (tensor<4xf32>, tensor<i64>) {
// CHECK-NEXT:    %c = glow_high.get @c : tensor<4xf32>
// CHECK-NEXT:    %0 = glow_high.add %a, %c : tensor<4xf32>
// CHECK-NEXT:    glow_high.return %0, %b
glow_high.func @several(%a: tensor<4xf32>, %b: tensor<i64>) -> (tensor<4xf32>, tensor<i64>) {
  %c = glow_high.get @c : tensor<4xf32>
  %0 = glow_high.add %a, %c : tensor<4xf32>
  glow_high.return %0, %b
}

// CHECK:       glow_high.func @produced() -> tensor<4xf32> {
// CHECK-NEXT:    %c = glow_high.get @c : tensor<4xf32>
// CHECK-NEXT:    glow_high.return %c
glow_high.func @produced() -> tensor<4xf32> {
  %c = glow_high.get @c : tensor<4xf32>
  glow_high.return %c
}

// What is saved elsewhere than at the end keeps its storage.

// CHECK:       glow_high.func @early(@early.x, @early.result) {
// CHECK-NEXT:    %x = glow_high.get @early.x : tensor<4xf32>
// CHECK-NEXT:    glow_high.save %x, @early.result
glow_high.placeholder @early.x : tensor<4xf32> {input, label = "x"}
glow_high.placeholder @early.result : tensor<4xf32> {output, label = "result"}
glow_high.func @early(@early.x, @early.result) {
  %x = glow_high.get @early.x : tensor<4xf32>
  glow_high.save %x, @early.result
  %0 = glow_high.relu %x : tensor<4xf32>
}

// Named storage stays named.

// CHECK:       glow_high.func @named(
glow_high.func @named() -> tensor<4xf32> {
  %c = glow_high.get @c : tensor<4xf32>
  glow_high.return %c
}

// CHECK:       glow_low.func @low(@in %x: memref<4xf32>, @inout %s: memref<4xf32>, @out %y: memref<4xf32>) {
// CHECK-NEXT:    glow_low.add @out %y, @in %x, @in %s
// CHECK-NEXT:    glow_low.copy @out %s, @in %y
glow_low.func @low(@in %x: memref<4xf32>, @inout %s: memref<4xf32>, @out %y: memref<4xf32>) {
  glow_low.add @out %y, @in %x, @in %s
  glow_low.copy @out %s, @in %y
}

// CHECK:       glow_low.func @empty(@in %x: memref<4xf32>) {
// CHECK-NEXT:  }
glow_low.func @empty(@in %x: memref<4xf32>) {
}
