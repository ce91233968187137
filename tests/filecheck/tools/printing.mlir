// Forms of output: generic, with locations, without the elements of large attributes; weights never print.

// RUN: glow-opt %s | filecheck %s
// RUN: glow-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: glow-opt %s --mlir-print-op-generic | glow-opt | filecheck %s
// RUN: glow-opt %s --print-debuginfo | filecheck %s --check-prefix=LOCATIONS
// RUN: glow-opt %s --mlir-print-debuginfo | glow-opt --print-debuginfo | filecheck %s --check-prefix=LOCATIONS
// RUN: glow-opt %s -o %t.mlir
// RUN: filecheck %s --input-file=%t.mlir --check-prefix=LOCATIONS
// RUN: glow-opt %s --mlir-elide-elementsattrs-if-larger=2 | filecheck %s --check-prefix=ELIDED
// RUN: glow-opt %s --mlir-elide-elementsattrs-if-larger=3 | filecheck %s
// RUN: glow-opt %s -p cse --mlir-elide-elementsattrs-if-larger=2 --mlir-print-ir-after-all -o /dev/null 2>&1 | filecheck %s --check-prefix=ELIDED

// CHECK:      glow_high.constant @c : tensor<3xf32> {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>}
// CHECK-NEXT: glow_high.placeholder @x : tensor<3xf32> {input}
// CHECK-NOT:  loc(

// GENERIC: "glow_high.constant"() <{sym_name = "c", type = tensor<3xf32>, value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>}> : () -> ()

// LOCATIONS: glow_high.constant @c {{.*}} loc("weights of layer 1")
// LOCATIONS: glow_high.placeholder @x {{.*}} loc("{{.*}}printing.mlir":{{[0-9]+}}:1)
// LOCATIONS: glow_high.get @x : tensor<3xf32> loc(unknown)
// LOCATIONS: } loc("{{.*}}printing.mlir":{{[0-9]+}}:1)

// ELIDED: glow_high.constant @c : tensor<3xf32> {value = dense_resource<__elided__> : tensor<3xf32>}
glow_high.constant @c : tensor<3xf32> {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} loc("weights of layer 1")
glow_high.placeholder @x : tensor<3xf32> {input}
glow_high.func @main(@x) {
  %x = glow_high.get @x : tensor<3xf32> loc(unknown)
}
