// Symbols that the program binds: what is refused.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: @fine
glow_high.placeholder @fine : tensor<4xf32> {input}

// -----

// expected-error@+1 {{glow_high.shape uses the symbol found, which is not bound before}}
glow_high.func @f(%count: tensor<i64>) {
  %0 = glow_high.shape {sizes = #glow.sizes<[found], found = 0 to 9>} : tensor<1xi64>
  glow_high.bind_symbol %count {symbol = #glow.sizes<[found], found = 0 to 9>}
}

// -----

// expected-error@+1 {{glow_high.shape uses the symbol inner, which is not bound before}}
glow_high.func @f(%count: tensor<i64>, %holds: tensor<i1>) {
  glow_high.if %holds {
    glow_high.bind_symbol %count {symbol = #glow.sizes<[inner], inner = 0 to 9>}
    glow_high.yield
  } else {
    glow_high.yield
  }
  %0 = glow_high.shape {sizes = #glow.sizes<[inner], inner = 0 to 9>} : tensor<1xi64>
}

// -----

// expected-error@+1 {{the symbol found has two ranges}}
glow_high.func @f(%count: tensor<i64>) {
  glow_high.bind_symbol %count {symbol = #glow.sizes<[found], found = 0 to 9>}
  %0 = glow_high.shape {sizes = #glow.sizes<[found], found = 0 to 8>} : tensor<1xi64>
}
