// What is not verified is printed as it is, with names of storage that there is not.

// RUN: glow-opt %s --disable-verify | filecheck %s

// CHECK: glow_high.func @main(@nowhere) {
glow_high.func @main(@nowhere) {
}
