// A module of any stage runs on the CPU and, as it stands, in the interpreter; both agree.

// RUN: glow-run %s --no-cache | filecheck %s
// RUN: glow-run %s --backend interpreter | filecheck %s
// RUN: cat %s | glow-run - --no-cache | filecheck %s
// RUN: glow-opt %s --stop-after allocated | glow-run - --backend interpreter | filecheck %s
// RUN: glow-opt %s --stop-after stacked | glow-run - --no-cache | filecheck %s
// RUN: glow-run %s --no-cache --check interpreter | filecheck %s --check-prefix=LAYERS
// RUN: glow-run %s --stats - | filecheck %s --check-prefix=STATS
// RUN: glow-run %s --no-cache --json - | filecheck %s --check-prefix=JSON
// RUN: glow-run %s --no-cache --warmup 0 --iterations 2 --profile | filecheck %s --check-prefix=PROFILE
// RUN: not glow-run %s --no-cache --input x=%s 2>&1 | filecheck %s --check-prefix=INPUT
// RUN: not glow-run %s --no-cache --bind N=1 2>&1 | filecheck %s --check-prefix=BIND

glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %gate = glow_high.sigmoid %x : tensor<4xf32> loc("gate")
  %y = glow_high.mul %gate, %x : tensor<4xf32> loc("product")
  glow_high.save %y, @y
}

// CHECK: outputs
// CHECK-NEXT: output  type {{ +}} min {{ +}} max {{ +}} mean  not finite
// CHECK-NEXT: y       float32[4] {{.*}} 0
// CHECK-NEXT: top 4 of y: {{[0-3]: .*, [0-3]: .*, [0-3]: .*, [0-3]: .*}}

// LAYERS: comparison with the interpreter
// LAYERS-NEXT: layer    kind     shape  max abs error  max rel error
// LAYERS-NEXT: gate     sigmoid  [4]
// LAYERS-NEXT: product  mul      [4]
// LAYERS-NEXT: y        output   [4]
// LAYERS-NEXT: check: 2 layers and 1 output agree with the interpreter

// STATS: "code_bytes": {{[0-9]+}}
// STATS-NEXT: "constant_bytes": 0
// STATS-NEXT: "arena_bytes": 0
// STATS-NEXT: "arena_lower_bound": 0
// STATS-NEXT: "arena_efficiency": 1.0
// STATS-NEXT: "instructions": {
// STATS-NEXT: "stack": 1

// JSON: "name": "y"
// JSON-NEXT: "type": "float32"

// PROFILE: Throughput: {{.*}} qps
// PROFILE-NEXT: Latency: min = {{.*}} ms, max = {{.*}} ms, mean = {{.*}} ms, median = {{.*}} ms, percentile(90%) =
// PROFILE-NEXT: Total Host Walltime: {{.*}} s, 2 iterations
// PROFILE-NEXT: profile, median of 2 runs
// PROFILE-NEXT: instruction  kernel  nodes         median µs  min µs      %
// PROFILE-NEXT: stack        stack   gate+product

// INPUT: {{.*}}glow-run.mlir: error: is no .npy or .npz file of numbers, or is cut off
// BIND: glow-run: error: an MLIR module has no free dimensions (hint: bind sizes when importing the ONNX model)
