// Operators with sizes that are known at run time only, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @sizes(%x: tensor<?x?x8xf32, #glow.sizes<[batch, length], batch = 1 to 4, length = 1 to 16>>, %w: tensor<16x8xf32>, %v: tensor<8xf32>) {
  %shape = glow_high.shape {sizes = #glow.sizes<[batch, length * 2 - 1], batch = 1 to 4, length = 1 to 16>} : tensor<2xi64>
  %reshape = glow_high.reshape %x {shape = #glow.sizes<[batch, length, 2, 4], batch = 1 to 4, length = 1 to 16>} : tensor<?x?x2x4xf32, #glow.sizes<[batch, length], batch = 1 to 4, length = 1 to 16>>
  %merged = glow_high.reshape %x {shape = #glow.sizes<[batch * length, 8], batch = 1 to 4, length = 1 to 16>} : tensor<?x8xf32, #glow.sizes<[batch * length], batch = 1 to 4, length = 1 to 16>>
  %slice = glow_high.slice %w {starts = [0, 0], ends = #glow.sizes<[length, 8], length = 1 to 16>, steps = [1, 1]} : tensor<?x8xf32, #glow.sizes<[length], length = 1 to 16>>
  %turned = glow_high.slice %w {starts = #glow.sizes<[length - 1, 0], length = 1 to 16>, ends = [-1, 8], steps = [-1, 1]} : tensor<?x8xf32, #glow.sizes<[length], length = 1 to 16>>
  %attention = glow_high.attention %x, %x, %x {scale = 0.5, causal = true, past = #glow.sizes<[length], length = 1 to 16>} : tensor<?x?x8xf32, #glow.sizes<[batch, length], batch = 1 to 4, length = 1 to 16>>
  %expand = glow_high.expand %v {shape = #glow.sizes<[length, 8], length = 1 to 16>} : tensor<?x8xf32, #glow.sizes<[length], length = 1 to 16>>
}

glow_high.func @bound(%x: tensor<9x4xf32>, %count: tensor<1xi64>, %holds: tensor<i1>) {
  glow_high.bind_symbol %count {symbol = #glow.sizes<[found], found = 0 to 9>}
  %slice = glow_high.slice %x {starts = [0, 0], ends = #glow.sizes<[found, 4], found = 0 to 9>, steps = [1, 1]} : tensor<?x4xf32, #glow.sizes<[found], found = 0 to 9>>
  %sum = glow_high.if %holds {
    glow_high.bind_symbol %count {symbol = #glow.sizes<[inner], inner = 2 to 9>}
    %shape = glow_high.shape {sizes = #glow.sizes<[found + inner], found = 0 to 9, inner = 2 to 9>} : tensor<1xi64>
    glow_high.yield %shape
  } else {
    glow_high.yield %count
  } : tensor<1xi64>
}
