// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: @x is tensor<2xf32>, not tensor<9xf32>
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.placeholder @y : tensor<9xf32> {output}
glow_high.func @main(@x, @y) {
  %0 = glow_high.get @x : tensor<9xf32>
  glow_high.save %0, @y
}

// -----

// CHECK: @y is tensor<2xf32>, not tensor<8192xf32>
glow_high.placeholder @x : tensor<8192xf32> {input}
glow_high.placeholder @y : tensor<2xf32> {output}
glow_high.func @main(@x, @y) {
  %0 = glow_high.get @x : tensor<8192xf32>
  glow_high.save %0, @y
}

// -----

// CHECK: @x cannot be written
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.func @main(@x) {
  %0 = glow_high.get @x : tensor<2xf32>
  glow_high.save %0, @x
}

// -----

// CHECK: 'mutable' contradicts what @s is
glow_high.placeholder @s : tensor<2xf32> {state}
glow_high.func @main(@s) {
  %0 = glow_high.get @s : tensor<2xf32>
  glow_high.save %0, @s
}

// -----

// CHECK: @x is not among the bindings of the function
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.placeholder @y : tensor<2xf32> {output}
glow_high.func @main(@y) {
  %0 = glow_high.get @x : tensor<2xf32>
  glow_high.save %0, @y
}

// -----

// CHECK: output @y is never saved
glow_high.placeholder @y : tensor<2xf32> {output}
glow_high.func @main(@y) {
}

// -----

// CHECK: @p is packed by no function that is bound to it
glow_high.placeholder @p : tensor<2xf32> {packed_by = @nobody}
glow_high.func @main(@p) {
}

// -----

// CHECK: @pack, which packs @p, is bound to something else than state
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.placeholder @p : tensor<2xf32> {packed_by = @pack}
glow_low.func @pack(@x, @p) {
}

// -----

// CHECK: @p is bound, but not @s, of which it is packed
glow_high.placeholder @s : tensor<2xf32> {state}
glow_high.placeholder @p : tensor<2xf32> {packed_by = @pack}
glow_low.func @pack(@s, @p) {
}
glow_low.func @main(@p) {
}
