// Functions of one module for different targets: each keeps its own through all stages, and has a module of the llvm
// dialect for itself.

// RUN: glow-opt %s --stop-after lowered | filecheck %s --check-prefix=LOWERED
// RUN: glow-opt %s --stop-after allocated | filecheck %s --check-prefix=ALLOCATED
// RUN: glow-opt %s --stop-after stacked | glow-opt --stop-after llvm | filecheck %s
// RUN: glow-opt %s --stop-after llvm | glow-opt | filecheck %s
// RUN: not glow-opt %s --stop-after llvm --target avx512 2>&1 | filecheck %s --check-prefix=FLAG

glow_high.placeholder @x : tensor<64xf32> {input}
glow_high.placeholder @y : tensor<64xf32> {output}

// LOWERED: glow_high.func @narrow({{.*}}#glow.target<{{.*}}, vector_bits = 128>
// ALLOCATED: glow_low.func @narrow({{.*}}#glow.target<{{.*}}, vector_bits = 128>
glow_high.func @narrow(@x, @y) attributes {target = #glow.target<backend = "cpu", triple = "aarch64-unknown-linux-gnu", cpu = "generic", features = "+neon", vector_bits = 128>} {
  %x = glow_high.get @x : tensor<64xf32>
  %1 = glow_high.relu %x : tensor<64xf32>
  glow_high.save %1, @y
}

// LOWERED: glow_high.func @wide({{.*}}#glow.target<{{.*}}, vector_bits = 256>
// ALLOCATED: glow_low.func @wide({{.*}}#glow.target<{{.*}}, vector_bits = 256>
glow_high.func @wide(@x, @y) attributes {target = #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v3", features = "+avx2,+fma", vector_bits = 256>} {
  %x = glow_high.get @x : tensor<64xf32>
  %1 = glow_high.relu %x : tensor<64xf32>
  glow_high.save %1, @y
}

// CHECK: builtin.module {
// CHECK: builtin.module attributes {llvm.target_triple = "aarch64-unknown-linux-gnu"} {
// CHECK: vector<4xf32>
// CHECK-NOT: vector<8xf32>
// CHECK: llvm.func @narrow({{.*}}target_cpu = "generic", target_features = #llvm.target_features<["+neon"]>
// CHECK: builtin.module attributes {llvm.target_triple = "x86_64-unknown-linux-gnu"} {
// CHECK: vector<8xf32>
// CHECK: llvm.func @wide({{.*}}target_cpu = "x86-64-v3", target_features = #llvm.target_features<["+avx2", "+fma"]>

// FLAG: glow-opt: error: @narrow is for triple=aarch64-unknown-linux-gnu, not x86_64-unknown-linux-gnu (hint: what a module says stands;
