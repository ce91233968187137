// Counts of sequences of numbers, printed and parsed back.

// RUN: GLOW_UNCHANGED

glow_high.func @counts(%x: tensor<3x12xi64>, %row: tensor<12xi32>, %w: tensor<9xf32>, %one: tensor<2x2xi64>, %two: tensor<4x3xi64>) {
  %tf_idf_vectorizer = glow_high.tf_idf_vectorizer %x, %w, %one, %two {size = 9, max_skip_count = 2, mode = "TFIDF"} : tensor<3x9xf32>
  %tf_idf_vectorizer_1 = glow_high.tf_idf_vectorizer %row, none, %two {size = 9} : tensor<9xf32>
}
