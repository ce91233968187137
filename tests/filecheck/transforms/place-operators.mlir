// Operators get devices: the first listed that executes them, or where they take the least time.

// RUN: glow-opt %s -p 'assign-devices{devices="interpreter,cpu,target=avx2"},place-operators' | filecheck %s --check-prefix=FIRST
// RUN: glow-opt %s -p 'assign-devices{devices="cpu,target=avx2,interpreter"},place-operators{strategy=latency}' | filecheck %s --check-prefix=ONE
// RUN: glow-opt %s -p 'assign-devices{devices="cpu,target=avx2,cpu,target=avx2"},place-operators{strategy=pipeline}' | filecheck %s --check-prefix=PIPELINE
// RUN: glow-opt %s -p 'assign-devices{devices="cpu,target=avx2,memory_bytes=2000000,cpu,target=avx2"},place-operators' | filecheck %s --check-prefix=MEMORY
// RUN: not glow-opt %s -p 'assign-devices{devices="cpu,target=avx2,memory_bytes=1000"},place-operators' 2>&1 | filecheck %s --check-prefix=FULL
// RUN: not glow-opt %s -p place-operators 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not glow-opt %s -p 'place-operators{strategy=luck}' 2>&1 | filecheck %s --check-prefix=STRATEGY

// FIRST-COUNT-4: glow.device = "interpreter:0"
// FIRST-NOT: glow.device = "cpu:0"
// ONE-COUNT-4: glow.device = "cpu:0"
// ONE-NOT: glow.device = "interpreter:0"

// Each of two devices has one of the products, and what is next to it.
// PIPELINE: glow_high.matmul {{.*}}glow.device = "cpu:0"
// PIPELINE: glow_high.matmul {{.*}}glow.device = "cpu:1"

// The first device has room for one of the constants.
// MEMORY-DAG: glow_high.matmul {{.*}}glow.device = "cpu:0"
// MEMORY-DAG: glow_high.matmul {{.*}}glow.device = "cpu:1"

// FULL: @main does not fit onto the devices: its constants take 2,097,152 bytes (hint: memory: cpu:0 1,000)
// NONE: the module says no devices (hint: run the pass 'assign-devices' first)
// STRATEGY: there is no strategy 'luck' (hint: there are preferred, latency, pipeline)

glow_high.constant @v : tensor<512x512xf32> {value = dense<0.5> : tensor<512x512xf32>}
glow_high.constant @w : tensor<512x512xf32> {value = dense<0.25> : tensor<512x512xf32>}
glow_high.placeholder @x : tensor<64x512xf32> {input}
glow_high.placeholder @y : tensor<64x512xf32> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<64x512xf32>
  %v = glow_high.get @v : tensor<512x512xf32>
  %w = glow_high.get @w : tensor<512x512xf32>
  %0 = glow_high.matmul %x, %v : tensor<64x512xf32>
  %1 = glow_high.relu %0 : tensor<64x512xf32>
  %2 = glow_high.matmul %1, %w : tensor<64x512xf32>
  %3 = glow_high.relu %2 : tensor<64x512xf32>
  glow_high.save %3, @y
}
