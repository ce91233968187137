// Mistakes in counts of sequences of numbers.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: glow_high.placeholder @right

glow_high.placeholder @right : tensor<1xf32> {input}

// -----

glow_high.func @wrong(%x: tensor<3x12xi64>, %w: tensor<8xf32>, %one: tensor<2x1xi64>, %two: tensor<4x3xi64>) {
  // expected-error @below {{'BM25' is none of TF, IDF, TFIDF}}
  %0 = glow_high.tf_idf_vectorizer %x, none, %two {size = 9, mode = "BM25"} : tensor<3x9xf32>
}

// -----

glow_high.func @wrong(%x: tensor<3x12xi64>, %w: tensor<8xf32>, %one: tensor<2x1xi64>, %two: tensor<4x3xi64>) {
  // expected-error @below {{an n-gram is one number or more, and a column}}
  %0 = glow_high.tf_idf_vectorizer %x, none, %one {size = 9} : tensor<3x9xf32>
}

// -----

glow_high.func @wrong(%x: tensor<3x12xi64>, %w: tensor<8xf32>, %one: tensor<2x1xi64>, %two: tensor<4x3xi64>) {
  // expected-error @below {{weights must have 9 elements}}
  %0 = glow_high.tf_idf_vectorizer %x, %w, %two {size = 9} : tensor<3x9xf32>
}

// -----

glow_high.func @wrong(%x: tensor<3x12xi64>, %w: tensor<8xf32>, %one: tensor<2x1xi64>, %two: tensor<4x3xi64>) {
  // expected-error @below {{size must be positive, max_skip_count not negative}}
  %0 = glow_high.tf_idf_vectorizer %x, none, %two {size = 0} : tensor<3x0xf32>
}
