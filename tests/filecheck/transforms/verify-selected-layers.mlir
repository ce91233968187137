// Layers that were erased have to be there again.

// RUN: not glow-opt %s -p 'verify-selected' 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK: error: verify-selected: it lacks layers that were erased (run 'expand-layers')
module attributes {glow.layers = [{name = "w0", omitted = #builtin.int<2>, placeholders = [], nodes = []}]} {
}
