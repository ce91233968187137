// One parser for both spellings of a pipeline, with options; passes of xDSL's and ours.

// RUN: glow-opt %s -p canonicalize,cse | filecheck %s
// RUN: glow-opt %s --pass-pipeline='builtin.module(canonicalize,cse)' | filecheck %s
// RUN: glow-opt %s -p 'fold-constants{expansion=1 limit=16},cse' | filecheck %s
// RUN: glow-opt < %s -p cse -o - | filecheck %s
// RUN: glow-opt %s --list-passes | filecheck %s --check-prefix=LIST
// RUN: not glow-opt %s -p fold-everything 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not glow-opt %s -p 'fold-constants{level=9}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not glow-opt %s -p 'fold-constants{limit=' 2>&1 | filecheck %s --check-prefix=SYNTAX
// RUN: not glow-opt %s --no-such-option 2>&1 | filecheck %s --check-prefix=REFUSED
// RUN: not glow-opt %s -t no-such-format 2>&1 | filecheck %s --check-prefix=FORMAT

// CHECK:      glow_high.func @main(@x, @y) {
// CHECK-NEXT:   %x = glow_high.get @x : tensor<4xf32>
// CHECK-NEXT:   %{{.*}} = glow_high.relu %x : tensor<4xf32>
// CHECK-NEXT:   glow_high.save %{{.*}}, @y
// CHECK-NEXT: }
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %again = glow_high.get @x : tensor<4xf32>
  %1 = glow_high.relu %again : tensor<4xf32>
  %2 = glow_high.relu %x : tensor<4xf32>
  glow_high.save %2, @y
}

// LIST: fold-constants{limit=1048576 quantized=false total=268435456 expansion=8}
// LIST-NEXT: {{ }}Replace operators whose operands are all constants
// LIST: passes of xDSL:
// LIST: canonicalize

// UNKNOWN: glow-opt: error: pass pipeline 'fold-everything': {{.*}}fold-everything
// OPTION: glow-opt: error: pass pipeline 'fold-constants{level=9}': fold-constants: no option 'level' (hint: limit, quantized, total, expansion)
// SYNTAX: glow-opt: error: pass pipeline 'fold-constants{limit=': Unknown argument value, {{.*}} (column 22)
// REFUSED: glow-opt: error: unrecognized arguments: --no-such-option (hint: glow-opt --help lists the options)
// FORMAT: glow-opt: error: argument -t/--emit: invalid choice: 'no-such-format' (choose from {{.*}}mlir
