// Neighbours that change places are lanes of a vector that do.

// RUN: glow-opt %s --stop-after structured --target avx2 | filecheck %s

// CHECK-LABEL: llvm.func internal @slice.20x2(
// CHECK:         llvm.shufflevector %{{.*}}, %{{.*}} [1, 0, 3, 2, 5, 4, 7, 6] : vector<8xi32>

glow_high.func @main(%x: tensor<20x2xf32>) -> tensor<20x2xf32> {
  %y = glow_high.slice %x {starts = [0, 1], ends = [20, -1], steps = [1, -1]} : tensor<20x2xf32>
  glow_high.return %y
}
