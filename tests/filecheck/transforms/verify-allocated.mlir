// Every buffer has its place, and buffers that live at once are apart.

// RUN: glow-opt %s -p verify-allocated --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_low.func @sound(
glow_high.constant @c : tensor<4xf32> {value = dense<1.0> : tensor<4xf32>}
glow_high.placeholder @x : tensor<4xf32> {input}
glow_low.func @sound(@x) attributes {activations = 128, activations_bound = 0, constants = 128} {
  %x = glow_low.weight @x {region = "bindings", offset = 0} : memref<4xf32>
  %c = glow_low.weight @c {region = "constants", offset = 64} : memref<4xf32>
  %0 = glow_low.alloc {offset = 64} : memref<4xf32>
  %1 = glow_low.alloc {offset = 0} : memref<4xf32>
  glow_low.dealloc @out %1
  %2 = glow_low.alloc {offset = 0} : memref<4xf32>
  %none = glow_low.alloc {offset = 0} : memref<0xf32>
  glow_low.dealloc @out %2
  glow_low.dealloc @out %0
}

// CHECK-NOT: glow_low.func

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_low.func @input_among_constants(@x) attributes {activations = 0, activations_bound = 0, constants = 64} {
  // expected-error@+1 {{@x is a binding, and no constant}}
  %x = glow_low.weight @x {region = "constants", offset = 0} : memref<4xf32>
}

// -----

glow_low.func @overlap() attributes {activations = 128, activations_bound = 0, constants = 0} {
  %0 = glow_low.alloc {offset = 0} : memref<32xf32>
  // expected-error@+1 {{offset 64 overlaps an allocation at offset 0 that is live}}
  %1 = glow_low.alloc {offset = 64} : memref<4xf32>
  glow_low.dealloc @out %1
  glow_low.dealloc @out %0
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_low.func @no_region(@x) attributes {activations = 0, activations_bound = 0, constants = 0} {
  // expected-error@+1 {{@x is in no region}}
  %x = glow_low.weight @x {offset = 0} : memref<4xf32>
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {input}
glow_low.func @other_binding(@x, @y) attributes {activations = 0, activations_bound = 0, constants = 0} {
  // expected-error@+1 {{@x is not binding 1}}
  %x = glow_low.weight @x {region = "bindings", offset = 1} : memref<4xf32>
}

// -----

glow_high.constant @c : tensor<4xf32> {value = dense<1.0> : tensor<4xf32>}
glow_high.constant @d : tensor<4xf32> {value = dense<1.0> : tensor<4xf32>}
glow_low.func @constants_overlap() attributes {activations = 0, activations_bound = 0, constants = 64} {
  %c = glow_low.weight @c {region = "constants", offset = 0} : memref<4xf32>
  // expected-error@+1 {{offset 0 overlaps the constant before it}}
  %d = glow_low.weight @d {region = "constants", offset = 0} : memref<4xf32>
}

// -----

glow_high.constant @c : tensor<4xf32> {value = dense<1.0> : tensor<4xf32>}
glow_low.func @one_place() attributes {activations = 0, activations_bound = 0, constants = 64} {
  %c = glow_low.weight @c {region = "constants", offset = 0} : memref<4xf32>
}
glow_low.func @other_place() attributes {activations = 0, activations_bound = 0, constants = 128} {
  // expected-error@+1 {{@c is at offset 0 as well}}
  %c = glow_low.weight @c {region = "constants", offset = 64} : memref<4xf32>
}

// -----

glow_high.constant @c : tensor<4xf32> {value = dense<1.0> : tensor<4xf32>}
glow_high.constant @d : tensor<4xf32> {value = dense<1.0> : tensor<4xf32>}
glow_low.func @constant_of_one() attributes {activations = 0, activations_bound = 0, constants = 64} {
  %c = glow_low.weight @c {region = "constants", offset = 0} : memref<4xf32>
}
glow_low.func @constant_of_another() attributes {activations = 0, activations_bound = 0, constants = 64} {
  // expected-error@+1 {{offset 0 overlaps the constant before it}}
  %d = glow_low.weight @d {region = "constants", offset = 0} : memref<4xf32>
}

// -----

glow_high.constant @c : tensor<4xf32> {value = dense<1.0> : tensor<4xf32>}
glow_low.func @constants_outside() attributes {activations = 0, activations_bound = 0, constants = 64} {
  // expected-error@+1 {{offset 64 is outside the 64 bytes of constants}}
  %c = glow_low.weight @c {region = "constants", offset = 64} : memref<4xf32>
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_low.func @bindings_overlap(@x, @y) attributes {activations = 64, activations_bound = 0, constants = 0, binding_offsets = [0, 0]} {
  %x = glow_low.weight @x {region = "bindings", offset = 0} : memref<4xf32>
  // expected-error@+1 {{offset 0 overlaps an allocation at offset 0 that is live}}
  %y = glow_low.weight @y {mutable, region = "bindings", offset = 1} : memref<4xf32>
  glow_low.neg @out %y, @in %x
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_low.func @binding_outside(@x, @y) attributes {activations = 64, activations_bound = 0, constants = 0, binding_offsets = [0, 64]} {
  %x = glow_low.weight @x {region = "bindings", offset = 0} : memref<4xf32>
  // expected-error@+1 {{offset 64 is outside the 64 bytes of activations}}
  %y = glow_low.weight @y {mutable, region = "bindings", offset = 1} : memref<4xf32>
  glow_low.neg @out %y, @in %x
}

// -----

glow_high.placeholder @s : tensor<4xf32> {state}
// expected-error@+1 {{binding 0 is state, which lives on between calls}}
glow_low.func @state_in_activations(@s) attributes {activations = 64, activations_bound = 0, constants = 0, binding_offsets = [0]} {
  %s = glow_low.weight @s {mutable, region = "bindings", offset = 0} : memref<4xf32>
  glow_low.fill @out %s {value = 0.0}
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
// expected-error@+1 {{there is not one offset for each binding}}
glow_low.func @too_many(@x) attributes {activations = 0, activations_bound = 0, constants = 0, binding_offsets = [0, 0]} {
  %x = glow_low.weight @x {region = "bindings", offset = 0} : memref<4xf32>
}
