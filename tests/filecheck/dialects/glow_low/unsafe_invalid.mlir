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
