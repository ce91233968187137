// What a target cannot say.

// RUN: glow-opt %s --parsing-diagnostics --split-input-file | filecheck %s

// CHECK: target_invalid.mlir:6:{{[0-9]+}}: {{.*}}a target names its backend
glow_high.func @main() attributes {target = #glow.target<triple = "x86_64-unknown-linux-gnu">} {
}

// -----

// CHECK: a target has no field 'lanes'; it has backend, triple, cpu,
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", lanes = 8>} {
}

// -----

// CHECK: the field 'threads' is given twice
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", threads = 1, threads = 2>} {
}

// -----

// CHECK: threads=0 is no number of threads (hint: 1 to 65536)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", threads = 0>} {
}

// -----

// CHECK: no accuracy 'loose' (hint: there are default, strict)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", accuracy = "loose">} {
}

// -----

// CHECK: vector_bits=100 is no width of vectors
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", vector_bits = 100>} {
}

// -----

// CHECK: pointer_bits=16 is no size of a pointer (hint: it is 32 or 64)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", pointer_bits = 16>} {
}

// -----

// CHECK: l2_bytes=-1 is too little (hint: 0 or more)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", l2_bytes = -1>} {
}

// -----

// CHECK: the feature 'avx2' is neither on nor off (hint: +avx2 or -avx2)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", features = "avx2">} {
}

// -----

// CHECK: string literal expected
glow_high.func @main() attributes {target = #glow.target<backend = 7>} {
}

// -----

// CHECK: a cost is given twice
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", costs = {most_taps = 1, most_taps = 2}>} {
}

// -----

// CHECK: the feature '+' is neither on nor off (hint: such as +avx2,-fma, without blanks)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", features = "+,">} {
}

// -----

// CHECK: the feature '' is neither on nor off (hint: such as +avx2,-fma, without blanks)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", features = "+avx2,">} {
}

// -----

// CHECK: the feature '+sse2 ' is neither on nor off (hint: such as +avx2,-fma, without blanks)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", features = "+avx2,+sse2 ,-avx">} {
}

// -----

// CHECK: the feature 'sse2' is given twice (hint: once, on or off)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", features = "+sse2,-avx,-sse2">} {
}

// -----

// CHECK: vector_registers=1 is too little (hint: 4 or more)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", vector_registers = 1>} {
}

// -----

// CHECK: line_bytes=48 is no power of two
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", line_bytes = 48>} {
}

// -----

// CHECK: vector_registers=99999999999999999999 is too much (hint: 65536 at most)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", vector_registers = 99999999999999999999>} {
}

// -----

// CHECK: line_bytes=99999999999999999999 is too much (hint: 140737488355328 at most)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", line_bytes = 99999999999999999999>} {
}

// -----

// CHECK: page_bytes=99999999999999999999 is too much (hint: 140737488355328 at most)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", page_bytes = 99999999999999999999>} {
}

// -----

// CHECK: l1_bytes=99999999999999999999 is too much (hint: 140737488355328 at most)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", l1_bytes = 99999999999999999999>} {
}

// -----

// CHECK: l2_bytes=99999999999999999999 is too much (hint: 140737488355328 at most)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", l2_bytes = 99999999999999999999>} {
}

// -----

// CHECK: l3_bytes=99999999999999999999 is too much (hint: 140737488355328 at most)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", l3_bytes = 99999999999999999999>} {
}

// -----

// CHECK: ram_bytes=99999999999999999999 is too much (hint: 140737488355328 at most)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", ram_bytes = 99999999999999999999>} {
}

// -----

// CHECK: flash_bytes=99999999999999999999 is too much (hint: 140737488355328 at most)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", flash_bytes = 99999999999999999999>} {
}

// -----

// CHECK: vector_bits=131072 is too much (hint: 65536 at most)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", vector_bits = 131072>} {
}

// -----

// CHECK: threads=99999999999999999999 is no number of threads (hint: 1 to 65536)
glow_high.func @main() attributes {target = #glow.target<backend = "cpu", threads = 99999999999999999999>} {
}
