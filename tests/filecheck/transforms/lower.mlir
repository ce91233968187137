// Operators that the backend does not execute become simpler ones, at the same place of the model.

// RUN: glow-opt %s -p lower | filecheck %s
// RUN: glow-opt %s -p 'lower{backend=cpu},verify-lowered' | filecheck %s
// RUN: glow-opt %s -p lower --print-debuginfo | filecheck %s --check-prefix=LOCATIONS
// RUN: glow-opt %s -p 'lower{backend=interpreter}' | filecheck %s --check-prefix=INTERPRETER
// RUN: not glow-opt %s -p 'lower{backend=no-such-backend}' 2>&1 | filecheck %s --check-prefix=UNKNOWN

glow_high.placeholder @scale : tensor<2xf32> {input}
glow_high.placeholder @x : tensor<1x3x2xf32> {input}
glow_high.placeholder @y : tensor<1x3x2xf32> {output}
glow_high.placeholder @z : tensor<1x3x2xf32> {output}

// CHECK-LABEL: glow_high.func @main(
// CHECK-NOT:     glow_high.{{batch_normalization|hardmax}}
// CHECK:         glow_high.sqrt
// CHECK-NOT:     glow_high.{{batch_normalization|hardmax}}
// CHECK:         %[[Y:.*]] = glow_high.add %{{.*}}, %{{.*}} : tensor<1x3x2xf32>
// CHECK:         glow_high.arg_max
// CHECK:         glow_high.equal
// CHECK:         %[[Z:.*]] = glow_high.cast
// CHECK-NEXT:    %[[R:.*]] = glow_high.relu %[[Z]]
// CHECK-NEXT:    glow_high.save %[[Y]], @y
// CHECK-NEXT:    glow_high.save %[[R]], @z

// LOCATIONS: glow_high.sqrt {{.*}} loc("norm")
// LOCATIONS: glow_high.add {{.*}} : tensor<1x3x2xf32> loc("norm")
// LOCATIONS: glow_high.arg_max {{.*}} loc("decision")
// LOCATIONS: glow_high.cast {{.*}} loc("decision")
// LOCATIONS: glow_high.relu {{.*}} loc("relu")

// INTERPRETER: glow_high.batch_normalization
// INTERPRETER: glow_high.hardmax
glow_high.func @main(@scale, @x, @y, @z) {
  %x = glow_high.get @x : tensor<1x3x2xf32>
  %s = glow_high.get @scale : tensor<2xf32>
  %1 = glow_high.batch_normalization %x, %s, %s, %s, %s : tensor<1x3x2xf32> loc("norm")
  %2 = glow_high.hardmax %1 : tensor<1x3x2xf32> loc("decision")
  %3 = glow_high.relu %2 : tensor<1x3x2xf32> loc("relu")
  glow_high.save %1, @y
  glow_high.save %3, @z
}

// UNKNOWN: glow-opt: error: no backend 'no-such-backend' (hint: there are {{.*}}cpu
