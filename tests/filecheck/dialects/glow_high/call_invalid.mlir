// Calls of functions, and what is between these: what the verifier refuses.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @t : tensor<4xf32> {between}
glow_high.func @part(@x, @t) {
  %x = glow_high.get @x : tensor<4xf32>
  glow_high.save %x, @t
}
glow_high.func @main(@x) {
  // expected-error@+1 {{the arguments of @part are @x : tensor<4xf32>}}
  %t = glow_high.call @part() : tensor<4xf32>
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @t : tensor<4xf32> {between}
glow_high.func @part(@x, @t) {
  %x = glow_high.get @x : tensor<4xf32>
  glow_high.save %x, @t
}
glow_high.func @main(@x) {
  %x = glow_high.get @x : tensor<4xf32>
  // expected-error@+1 {{the results of @part are @t : tensor<4xf32>}}
  %t = glow_high.call @part(%x) : tensor<5xf32>
}

// -----

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @z : tensor<4xf32> {input}
glow_high.placeholder @t : tensor<4xf32> {between}
glow_high.func @part(@x, @t) {
  %x = glow_high.get @x : tensor<4xf32>
  glow_high.save %x, @t
}
glow_high.func @main(@x, @z) {
  %z = glow_high.get @z : tensor<4xf32>
  // expected-error@+1 {{@part reads @x, which is something else here}}
  %t = glow_high.call @part(%z) : tensor<4xf32>
}

// -----

glow_high.placeholder @t : tensor<4xf32> {between}
// expected-error@+1 {{@t is read by another function than the one that writes it}}
glow_high.func @part(@t) {
  %t = glow_high.get @t : tensor<4xf32>
  glow_high.save %t, @t
}

// -----

// What is right is printed.
// CHECK: glow_high.func @fine()
glow_high.func @fine() {
}
