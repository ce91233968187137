// The generator of random bits, printed and parsed back; the first word and all of its bits are not printed.

// RUN: GLOW_UNCHANGED

glow_high.func @main(%index: tensor<4x1xi64>, %along: tensor<8xi64>, %stream: tensor<i64>, %key: tensor<i64>) {
  %bits = glow_high.philox %index, %stream, %key : tensor<4x1xui32>
  %bits_1 = glow_high.philox %along, %index, %key {bits = 24, word = 3} : tensor<4x8xui32>
}
