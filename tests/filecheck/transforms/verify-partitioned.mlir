// What a partitioned module promises.

// RUN: glow-opt %s --split-input-file --verify-diagnostics -p verify-partitioned | filecheck %s

builtin.module attributes {glow.devices = [#glow.device<"interpreter:0", #glow.target<backend = "interpreter">>]} {
  glow_high.placeholder @x : tensor<4xf32> {input}
  glow_high.placeholder @y : tensor<4xf32> {output}
  glow_high.func @main(@x, @y) {
    %x = glow_high.get @x : tensor<4xf32>
    // expected-error@+1 {{glow_high.relu is in no partition}}
    %r = glow_high.relu %x : tensor<4xf32>
    glow_high.save %r, @y
  }
}

// -----

builtin.module attributes {glow.devices = [#glow.device<"interpreter:0", #glow.target<backend = "interpreter">>]} {
  glow_high.placeholder @x : tensor<4xf32> {input}
  glow_high.placeholder @y : tensor<4xf32> {output}
  // expected-error@+1 {{@part is for no device of the module}}
  glow_high.func @part(@x, @y) attributes {target = #glow.target<backend = "interpreter">, device = "interpreter:1"} {
    %x = glow_high.get @x : tensor<4xf32>
    glow_high.save %x, @y
  }
  glow_high.func @main(@x, @y) {
    %x = glow_high.get @x : tensor<4xf32>
    %y = glow_high.call @part(%x) : tensor<4xf32>
    glow_high.save %y, @y
  }
}

// -----

builtin.module attributes {glow.devices = [#glow.device<"interpreter:0", #glow.target<backend = "interpreter">>]} {
  glow_high.placeholder @x : tensor<4xf32> {input}
  glow_high.placeholder @y : tensor<4xf32> {output}
  // expected-error@+1 {{@part has another target than its device interpreter:0}}
  glow_high.func @part(@x, @y) attributes {target = #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu">, device = "interpreter:0"} {
    %x = glow_high.get @x : tensor<4xf32>
    glow_high.save %x, @y
  }
  glow_high.func @main(@x, @y) {
    %x = glow_high.get @x : tensor<4xf32>
    %y = glow_high.call @part(%x) : tensor<4xf32>
    glow_high.save %y, @y
  }
}

// -----

builtin.module attributes {glow.devices = [#glow.device<"interpreter:0", #glow.target<backend = "interpreter">>]} {
  glow_high.placeholder @x : tensor<4xf32> {input}
  // expected-error@+1 {{@t is read by no function}}
  glow_high.placeholder @t : tensor<4xf32> {between}
  glow_high.func @part(@x, @t) attributes {target = #glow.target<backend = "interpreter">, device = "interpreter:0"} {
    %x = glow_high.get @x : tensor<4xf32>
    glow_high.save %x, @t
  }
  glow_high.func @main(@x) {
    %x = glow_high.get @x : tensor<4xf32>
    %t = glow_high.call @part(%x) : tensor<4xf32>
  }
}

// -----

builtin.module attributes {glow.devices = [#glow.device<"interpreter:0", #glow.target<backend = "interpreter">>]} {
  glow_high.placeholder @x : tensor<4xf32> {input}
  glow_high.placeholder @y : tensor<4xf32> {output}
  // expected-error@+1 {{@part is called more than once}}
  glow_high.func @part(@x, @y) attributes {target = #glow.target<backend = "interpreter">, device = "interpreter:0"} {
    %x = glow_high.get @x : tensor<4xf32>
    glow_high.save %x, @y
  }
  glow_high.func @main(@x, @y) {
    %x = glow_high.get @x : tensor<4xf32>
    %y = glow_high.call @part(%x) : tensor<4xf32>
    %z = glow_high.call @part(%x) : tensor<4xf32>
    glow_high.save %z, @y
  }
}

// -----

builtin.module attributes {glow.devices = [#glow.device<"interpreter:0", #glow.target<backend = "interpreter">>, #glow.device<"interpreter:1", #glow.target<backend = "interpreter">>]} {
  // expected-error@+1 {{state @s is on interpreter:0 and on interpreter:1}}
  glow_high.placeholder @s : tensor<4xf32> {state}
  glow_high.placeholder @y : tensor<4xf32> {output}
  glow_high.func @first(@s, @y) attributes {target = #glow.target<backend = "interpreter">, device = "interpreter:0"} {
    %s = glow_high.get @s {mutable} : tensor<4xf32>
    glow_high.save %s, @y
  }
  glow_high.func @second(@s) attributes {target = #glow.target<backend = "interpreter">, device = "interpreter:1"} {
    %s = glow_high.get @s {mutable} : tensor<4xf32>
    glow_high.save %s, @s
  }
  glow_high.func @main(@s, @y) {
    %y = glow_high.call @first() : tensor<4xf32>
    glow_high.call @second()
    glow_high.save %y, @y
  }
}

// -----

// What is right is printed.
// CHECK: glow_high.func @fine()
glow_high.func @fine() {
}
