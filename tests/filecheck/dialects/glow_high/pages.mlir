// Keys and values in pages, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @pages(%q: tensor<3x4x6xf32>, %k: tensor<3x2x6xf32>, %v: tensor<3x2x9xf32>, %keys: tensor<5x2x6x16xf16>, %values: tensor<5x2x16x9xbf16>, %table: tensor<2x2xi64>, %s: tensor<3xi64>, %p: tensor<3xi32>, %sinks: tensor<4xf32>, %lengths: tensor<2xi64>) {
  %write_pages = glow_high.write_pages %keys, %k, %table, %s, %p {transposed = true} : tensor<5x2x6x16xf16>
  %write_pages_1 = glow_high.write_pages %values, %v, %table, %s, %p : tensor<5x2x16x9xbf16>
  %paged_attention = glow_high.paged_attention %q, %write_pages, %write_pages_1, %table, %s, %p : tensor<3x4x9xf32>
  %paged_attention_1 = glow_high.paged_attention %q, %keys, %values, %table, %s, %p, %sinks {scale = 0.125, window = 7, softcap = 2.0} : tensor<3x4x9xf32>
  %paged_attention_2 = glow_high.paged_attention %q, %keys, %values, %table, %s, %p, none, %lengths {window = 7} : tensor<3x4x9xf32>
}

glow_high.func @of_bytes(%q: tensor<3x4x6xf32>, %k: tensor<3x2x6xi8>, %keys: tensor<5x2x6x16xi8>, %values: tensor<5x2x16x9xi8>, %table: tensor<2x2xi64>, %s: tensor<3xi64>, %p: tensor<3xi64>, %scales: tensor<5x2x1x16xf32>) {
  %write_pages = glow_high.write_pages %keys, %k, %table, %s, %p {transposed = true} : tensor<5x2x6x16xi8>
  %paged_attention = glow_high.paged_attention %q, %write_pages, %values, %table, %s, %p, none, none, %scales, %scales : tensor<3x4x9xf32>
}
