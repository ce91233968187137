// The ladder by the names of its stages; a module remembers where it is.

// RUN: glow-opt %s --stop-after=lowered | filecheck %s --check-prefix=LOWERED
// RUN: glow-opt %s --stage instructions | filecheck %s --check-prefix=INSTRUCTIONS
// RUN: glow-opt %s --stage allocated --backend cpu --target host | filecheck %s --check-prefix=ALLOCATED
// RUN: glow-opt %s --stage stacked | glow-opt --stage allocated | filecheck %s --check-prefix=ALLOCATED
// RUN: glow-opt %s --stage structured | filecheck %s --check-prefix=STRUCTURED
// RUN: glow-opt %s --stage llvm | filecheck %s --check-prefix=LLVM
// RUN: glow-opt %s --stage structured | glow-opt --stage llvm | filecheck %s --check-prefix=LLVM
// RUN: glow-opt %s --stage structured | glow-opt -p scf-to-llvm -t llvm | filecheck %s --check-prefix=TEXT
// RUN: glow-opt %s --stage optimized --backend interpreter | filecheck %s --check-prefix=OPTIMIZED
// RUN: glow-opt %s --stage instructions -p shorten-lifetimes | filecheck %s --check-prefix=PASSES
// RUN: glow-opt %s --pipeline interpreter | filecheck %s --check-prefix=OPTIMIZED
// RUN: glow-opt %s --pipeline optimize | filecheck %s --check-prefix=OPTIMIZED
// RUN: glow-opt %s --pipeline cpu | filecheck %s --check-prefix=LLVM
// RUN: glow-opt %s --stage scheduled --disable-passes sink-transposes,cse -p cse --dump-pass-pipeline 2>&1 -o /dev/null | filecheck %s --check-prefix=DISABLED
// RUN: glow-opt --list-pipelines | filecheck %s --check-prefix=LIST
// RUN: not glow-opt %s --pipeline optimize --stage lowered 2>&1 | filecheck %s --check-prefix=SHORT
// RUN: not glow-opt %s --pipeline optimize --disable-passes schedule 2>&1 | filecheck %s --check-prefix=ABSENT
// RUN: not glow-opt %s --pipeline cpu --disable-passes select 2>&1 | filecheck %s --check-prefix=ESSENTIAL
// RUN: not glow-opt %s --stage nowhere 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not glow-opt %s --stage lowered --backend no-such-backend 2>&1 | filecheck %s --check-prefix=BACKEND
// RUN: glow-opt %s --stage stacked -o %t.mlir
// RUN: not glow-opt %t.mlir --stage lowered 2>&1 | filecheck %s --check-prefix=BEHIND

glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %1 = glow_high.relu %x : tensor<4xf32>
  %2 = glow_high.neg %1 : tensor<4xf32>
  glow_high.save %2, @y
}

// LOWERED: builtin.module attributes {glow.stage = "lowered"}
// LOWERED: glow_high.relu

// INSTRUCTIONS: builtin.module attributes {glow.stage = "instructions"}
// INSTRUCTIONS: glow_low.relu @out %{{.*}}, @in %x
// INSTRUCTIONS: glow_low.neg @out

// ALLOCATED: builtin.module attributes {glow.stage = "allocated"}
// ALLOCATED: glow_low.func @main(@x, @y) attributes {target = #glow.target<{{.*}}>, activations = 0, activations_bound = 0, constants = 0}
// ALLOCATED: glow_low.stack @out %{{.*}}, @in %x {{.*}}kernel =

// STRUCTURED: builtin.module attributes {{{.*}}glow.stage = "structured"}
// STRUCTURED: llvm.func @main(

// TEXT: define i32 @main(

// LLVM-NOT: glow
// LLVM: llvm.func @main(

// OPTIMIZED: builtin.module attributes {glow.stage = "optimized"}

// PASSES: %[[A:.*]] = glow_low.alloc
// PASSES-NEXT: glow_low.relu @out %[[A]], @in %x
// PASSES-NEXT: %[[B:.*]] = glow_low.alloc
// PASSES-NEXT: glow_low.neg @out %[[B]], @in %[[A]]
// PASSES-NEXT: glow_low.dealloc @out %[[A]]

// UNKNOWN: glow-opt: error: no stage 'nowhere' (hint: stages are imported,
// BACKEND: glow-opt: error: no pipeline 'no-such-backend' (hint: there are optimize, cpu, cuda, heterogeneous, interpreter, opencl)
// BEHIND: glow-opt: error: the module is at stage 'stacked', behind 'lowered'

// DISABLED-NOT: sink-transposes
// DISABLED: ,schedule,cse)

// LIST:      optimize
// LIST-NEXT: imported
// LIST-NEXT: differentiated differentiate
// LIST-NEXT: optimized assign-target,fold-into-trees,canonicalize,raise-gathers,fold-constants,
// LIST:      cpu
// LIST:      allocated {{.*}}allocate,verify-allocated
// LIST-NEXT: structured glow-low-to-scf,verify-structured
// LIST-NEXT: llvm scf-to-llvm
// LIST-NEXT: cuda
// LIST:      heterogeneous
// LIST:      placed assign-devices,place-operators
// LIST-NEXT: partitioned partition,verify-partitioned
// LIST-NEXT: host-program glow-high-to-glow-low,insert-transfers,
// LIST-NEXT: interpreter
// LIST-NEXT: imported
// LIST-NEXT: differentiated
// LIST-NEXT: optimized
// LIST-NEXT: opencl

// SHORT: glow-opt: error: no stage 'lowered' (hint: stages are imported, differentiated, optimized)
// ABSENT: glow-opt: error: there is no pass 'schedule' in pipeline 'optimize' (hint: it has differentiate, assign-target, fold-into-trees, canonicalize, raise-gathers, fold-constants,
// ESSENTIAL: glow-opt: error: the pass 'select' cannot be left out (hint: the stages behind it need it)
