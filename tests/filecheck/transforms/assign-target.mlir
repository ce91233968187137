// Functions say for what machine they are compiled: those that do not yet get it from the options.

// RUN: glow-opt %s -p 'assign-target{target=avx2}' | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},assign-target' | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx2},assign-target{target=avx2}' | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target=avx512 vector_bits=256 threads=4 accuracy=strict}' | filecheck %s --check-prefix=FIELDS
// RUN: glow-opt %s -p 'assign-target{target="avx512,vector_bits=256,threads=4" accuracy=strict}' | filecheck %s --check-prefix=FIELDS
// RUN: glow-opt %s -p 'assign-target{target=scalar},assign-target{target=avx2 override=true}' | filecheck %s --check-prefix=OVERRIDE
// RUN: glow-opt %s -p 'assign-target{backend=interpreter}' | filecheck %s --check-prefix=INTERPRETER
// RUN: glow-opt %s -p 'assign-target{target="neon,features=+neon,+dotprod"}' | filecheck %s --check-prefix=FEATURES
// RUN: glow-opt %s -p assign-target | filecheck %s --check-prefix=HOST
// RUN: glow-opt %s -p 'assign-target{target=avx2},glow-high-to-glow-low' | filecheck %s --check-prefix=LOW
// RUN: not glow-opt %s -p 'assign-target{target=avx2},assign-target{target=avx512}' 2>&1 | filecheck %s --check-prefix=ANOTHER
// RUN: not glow-opt %s -p 'assign-target{target=avx2},assign-target{threads=2}' 2>&1 | filecheck %s --check-prefix=THREADS
// RUN: not glow-opt %s -p 'assign-target{backend=interpreter},assign-target{backend=cpu}' 2>&1 | filecheck %s --check-prefix=BACKEND
// RUN: not glow-opt %s -p 'assign-target{target=avx3}' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not glow-opt %s -p 'assign-target{target="avx2,lanes=8"}' 2>&1 | filecheck %s --check-prefix=FIELD
// RUN: not glow-opt %s -p 'assign-target{vector_bits=100}' 2>&1 | filecheck %s --check-prefix=WIDTH
// RUN: not glow-opt %s -p 'assign-target{threads=1025}' 2>&1 | filecheck %s --check-prefix=MOST
// RUN: not glow-opt %s -p lower 2>&1 | filecheck %s --check-prefix=MISSING

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}

// CHECK: glow_high.func @plain(@x, @y) attributes {target = #glow.target<backend = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v3", features = "+avx2,
// CHECK-SAME: ", vector_bits = 256, l1_bytes = 32768, l2_bytes = 524288, l3_bytes = 33554432>} {
// FIELDS: glow_high.func @plain({{.*}}cpu = "x86-64-v4", features = "{{.*}}", vector_bits = 256, vector_registers = 32, {{.*}}, threads = 4, accuracy = "strict">} {
// OVERRIDE: glow_high.func @plain({{.*}}cpu = "x86-64-v3"
// INTERPRETER: glow_high.func @plain(@x, @y) attributes {target = #glow.target<backend = "interpreter">} {
// FEATURES: glow_high.func @plain({{.*}}cpu = "generic", features = "+neon,+dotprod",
// HOST: glow_high.func @plain(@x, @y) attributes {target = #glow.target<backend = "cpu", triple = "{{.+}}", cpu = "{{.+}}"
// LOW: glow_low.func @plain(@x, @y) attributes {target = #glow.target<backend = "cpu", {{.*}}cpu = "x86-64-v3"
glow_high.func @plain(@x, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %1 = glow_high.relu %x : tensor<4xf32>
  glow_high.save %1, @y
}

// ANOTHER: glow-opt: error: @plain is for cpu=x86-64-v3, not x86-64-v4 (hint: what a module says stands; 'assign-target{override=true}' replaces its target)
// THREADS: glow-opt: error: @plain is for threads=1, not 2 (hint:
// BACKEND: glow-opt: error: @plain is for backend=interpreter, not cpu (hint:
// NAME: glow-opt: error: no target is called 'avx3' (hint: there are host, amx, avx2, {{.*}}cortex-m4, {{.*}}wasm32)
// FIELD: glow-opt: error: a target has no field 'lanes' (hint: it has backend, triple, cpu, features,
// WIDTH: glow-opt: error: vector_bits=100 is no width of vectors (hint: a power of two from 64 on, or 0 for none)
// MOST: glow-opt: error: threads=1025 is no number of threads (hint: 1 to 1024)
// MISSING: assign-target.mlir: error: @plain has no target (hint: run the pass 'assign-target' first)
